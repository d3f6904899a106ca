package offline

import (
	"slices"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestEnglish(t *testing.T) {
	t.Parallel()
	keeps(t, []kept{
		{"After the outage we decided to use Kafka.", "User said: After the outage we decided to use Kafka", memory.TypeDecision},
		{"As a child I lived in Kenya with my aunt.", "As a child, User lived in Kenya with their aunt", memory.TypeFact},
		{"I've loved astronomy since I was a kid.", "User has loved astronomy since they were a kid", memory.TypePreference},
		{"My mother can speak five languages.", "User's mother can speak five languages", memory.TypeFact},
		{"Priya will lead the migration.", "Priya will lead the migration", memory.TypeFact},
		{"I like coffee.", "User likes coffee", memory.TypePreference},
		{"I really love hiking in the Alps.", "User really loves hiking in the Alps", memory.TypePreference},
		{"I don't eat meat.", "User doesn't eat meat", memory.TypePreference},
		{"I'm allergic to peanuts.", "User is allergic to peanuts", memory.TypeFact},
		{"Oh, by the way, I’m a nurse at St. Mary's hospital.", "User is a nurse at St. Mary's hospital", memory.TypeIdentity},
		{"My name is Maria Santos.", "User's name is Maria Santos", memory.TypeIdentity},
		{"I live in Lisbon, but I never liked it there.", "User lives in Lisbon, but they never liked it there", memory.TypeFact},
		{"My favourite neighbourhood is Alfama, I lived there in 2019.", "User's favourite neighbourhood is Alfama, they lived there in 2019", memory.TypePreference},
		{"I bought a car last week and I drive it to work.", "User bought a car last week and they drive it to work", memory.TypeEvent},
		{"When I was young, I lived in Rome.", "", ""},
		{"I work as a data engineer and have two kids.", "User works as a data engineer and has two kids", memory.TypeFact},
		{"My sister lives in Rome with her two cats.", "User's sister lives in Rome with her two cats", memory.TypeFact},
		{"I moved to Hamburg last summer.", "User moved to Hamburg last summer", memory.TypeEvent},
		{"I'm going to run the Lisbon marathon in October.", "User is going to run the Lisbon marathon in October", memory.TypeGoal},
		{"I have to renew my passport before June 12th.", "User has to renew their passport before June 12th", memory.TypeTodo},
		{"We decided to use Postgres for the new service.", "User said: We decided to use Postgres for the new service", memory.TypeDecision},
		{"I've decided to quit my job.", "User has decided to quit their job", memory.TypeDecision},
		{"I study biology at night.", "User studies biology at night", memory.TypeFact},
		{"I used to smoke when I was young.", "User used to smoke when they were young", memory.TypeFact},
		{"The launch is on Friday.", "The launch is on Friday", memory.TypeEvent},
		{"Please remember that my flight leaves at 6 am.", "User's flight leaves at 6 am", memory.TypeFact},
		{"Remember: the office is closed on Fridays.", "The office is closed on Fridays", memory.TypeEvent},
		{"You can call me Max.", "User wants to be called Max", memory.TypeIdentity},
		{"Anna is my sister.", "Anna is User's sister", memory.TypeFact},
		{"Remember I'm vegetarian.", "User is vegetarian", memory.TypePreference},
		{"I no longer eat meat.", "User no longer eats meat", memory.TypePreference},
		{"im allergic to nuts", "User is allergic to nuts", memory.TypeFact},
		{"I am not married.", "User is not married", memory.TypeIdentity},
		{"I hate it when people are late.", "User hates it when people are late", memory.TypePreference},
		{"We went camping in the mountains last weekend.", "User said: We went camping in the mountains last weekend", memory.TypeEvent},
		{"Jonas doesn't eat meat.", "Jonas doesn't eat meat", memory.TypePreference},
		{"My favourite colour is green.", "User's favourite colour is green", memory.TypePreference},
		{"I'll be in Paris next week.", "User will be in Paris next week", memory.TypeEvent},
		{"I would love to visit Japan one day.", "User would love to visit Japan one day", memory.TypeGoal},
	})
	leaves(t, []string{
		"After that I get an error.", "In this function I use a loop.", "My laptop can't connect to the wifi.", "Today I learned that whales sleep upright.", "Apple will present a new phone.",
		"Hello, how are you?", "Hi!", "Thanks a lot, that was helpful.", "Thank you!", "Good morning.", "What is the capital of France?",
		"Can you write me a poem about the sea?", "Please summarize this text.", "Tell me a joke.", "I have a question.", "I have a quick question about Go.",
		"I want you to act as a pirate.", "I'd like to know how tides work.", "I need help with my homework.", "I'm fine, thanks.", "I'm sorry.",
		"I don't know.", "I love it!", "I like your answer.", "Okay, great.", "Paris is the capital of France.", "The weather is nice.",
		"I'll try that.", "I was wondering if you could help.", "I have to go.", "Let's see.", "How do I cook rice?", "Do you like music?",
		"I think so.", "I got an error when I ran it.", "Remember this.", "Write a function that sorts a list.", "> I like tea.", "```\nI like tea.\n```",
		"My question is about tax.", "I'm looking for a recipe.", "Yes.", "No problem.", "See you tomorrow.", "Haha, nice one!",
		"I have a list of numbers and want to sort it.", "My code is not working.", "I have a bug in my code.", "I hate that.", "Call me tomorrow.", "I'm a bit tired.", "I plan to use your code.",
	})
}

func TestEnglishClauses(t *testing.T) {
	t.Parallel()
	for said, want := range map[string][]string{
		"Hi! I'm Maya, I work as a nurse in Rotterdam and I'm planning a trip for October.": {
			"User is Maya", "User works as a nurse in Rotterdam", "User is planning a trip for October",
		},
		"Hi, I'm Anna and I live in Berlin with my husband!":  {"User is Anna", "User lives in Berlin with their husband"},
		"I live in Lisbon, but I grew up in Porto.":           {"User lives in Lisbon", "User grew up in Porto"},
		"I'm allergic to peanuts, and I prefer window seats.": {"User is allergic to peanuts", "User prefers window seats"},
		"I live in Bonn and my sister lives in Rome.":         {"User lives in Bonn", "User's sister lives in Rome"},
		"I like tea and I don't know why.":                    {"User likes tea and they don't know why"},
		"I love hiking and I do it every weekend.":            {"User loves hiking and they do it every weekend"},
		"I work as a data engineer and have two kids.":        {"User works as a data engineer and has two kids"},
		"im vegetarian, and i live in Oslo":                   {"User is vegetarian", "User lives in Oslo"},
	} {
		if got := textsOf(factsOf(t, user(said))); !slices.Equal(got, want) {
			t.Errorf("%q\nleft %q\nwant %q", said, got, want)
		}
	}
}
