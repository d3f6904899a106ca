package offline

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

var _ model.Extractor = (*Extractor)(nil)

func textsOf(facts []model.Fact) []string {
	var texts []string
	for _, fact := range facts {
		texts = append(texts, fact.Text)
	}
	return texts
}

func user(content string) model.Message { return model.Message{Role: "user", Content: content} }

func TestConversation(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		messages []model.Message
		want     []string
	}{
		{"SmallTalkLeavesNothing", []model.Message{user("Hello, how are you?"), {Role: "assistant", Content: "I'm fine. I like helping people."}, user("Great, thanks!")}, nil},
		{"TheAssistantIsNoSource", []model.Message{{Role: "assistant", Content: "I live in the cloud. My name is Bot."}, {Role: "System", Content: "I like rules."}, {Role: "tool", Content: "I have two kids."}}, nil},
		{"EverybodyElseIs", []model.Message{{Role: "user", Name: "Caroline", Content: "I went to a pottery class yesterday."}, {Role: "human", Name: "Melanie", Content: "I have three cats."}}, []string{"Caroline went to a pottery class yesterday", "Melanie has three cats"}},
		{"NamesInEveryLanguage", []model.Message{
			{Role: "user", Name: "Jörg", Content: "Ich mag Tee."},
			{Role: "user", Name: "Ana", Content: "Me gusta el té."},
			{Role: "user", Name: "Luc", Content: "J'aime le thé."},
			{Role: "user", Name: "李娜", Content: "我喜欢茶。"},
			{Role: "user", Name: "田中さん", Content: "お茶が好きです。"},
			{Role: "user", Name: "James", Content: "My boss likes tea."},
		}, []string{"Jörg mag Tee", "A Ana le gusta el té", "Luc aime le thé", "李娜喜欢茶", "田中さんはお茶が好きです", "James' boss likes tea"}},
		{"BehindABeginningThatSaysLittle", []model.Message{user("Sure thing, I live in Porto."), user("推荐一家餐厅吧，我喜欢粤菜。")}, []string{"User lives in Porto", "用户喜欢粤菜"}},
		{"NotBehindAConditionOrAnExample", []model.Message{
			user("If I could, I would like to buy a boat."), user("In the story, I am a dragon."), user("For example, I like pizza."), user("Stell dir vor, ich bin ein Pirat."),
			user("如果我有钱，我想买房子。"), user("Imagine, je suis un pirate."),
		}, nil},
		{"RepeatsCountOnce", []model.Message{user("I like tea."), user("I like TEA!")}, []string{"User likes tea"}},
		{"StatementsBesideChatter", []model.Message{user("Hi! I'm a nurse. How are you? By the way, I live in Porto. Can you help me?")}, []string{"User is a nurse", "User lives in Porto"}},
		{"ListsAndTypography", []model.Message{user("About me:\n- I’m a teacher\n* I love “slow” food…\n• I don’t drink alcohol")}, []string{"User is a teacher", "User loves “slow” food", "User doesn't drink alcohol"}},
		{"QuotesAndCodeAreNotTheSpeaker", []model.Message{user("> I hate cats.\n```\nI like dogs.\n```\nI like birds.")}, []string{"User likes birds"}},
		{"LanguagesMayMix", []model.Message{user("I live in Berlin. Ich mag Kaffee. Me gusta el vino. J'aime le pain. 我喜欢茶。犬を飼っています。")}, []string{
			"User lives in Berlin", "Nutzer mag Kaffee", "Al usuario le gusta el vino", "L'utilisateur aime le pain", "用户喜欢茶", "ユーザーは犬を飼っています",
		}},
		{"OtherLanguagesLeaveNothing", []model.Message{user("Я люблю кофе."), user("أحب القهوة"), user("나는 커피를 좋아해요")}, nil},
		{"NothingAtAll", []model.Message{user(""), user(" \n\t"), user("…"), user("👍🎉"), user("?!"), user("I"), user("我"), user("Ich"), user("je"), user("my")}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := textsOf(factsOf(t, c.messages...)); !slices.Equal(got, c.want) {
				t.Fatalf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestExtract(t *testing.T) {
	t.Parallel()

	t.Run("SameInputSameAnswer", func(t *testing.T) {
		t.Parallel()
		messages := []model.Message{user("I like tea. I live in Rome. Ich wohne in Köln. Vivo en Madrid. 我住在上海。")}
		first := factsOf(t, messages...)
		for range 20 {
			if got := factsOf(t, messages...); !slices.Equal(textsOf(got), textsOf(first)) {
				t.Fatalf("got %q, then %q", textsOf(first), textsOf(got))
			}
		}
	})

	t.Run("AnISODateBecomesTheEventDate", func(t *testing.T) {
		t.Parallel()
		got := factsOf(t, user("I moved to Hamburg on 2024-03-01. I bought a car between 2024-01-01 and 2024-02-01. I sold it on 2024-99-99."))
		if len(got) < 2 || got[0].EventDate == nil || got[0].EventDate.Format(time.DateOnly) != "2024-03-01" {
			t.Fatalf("got %+v", got)
		}
		for _, fact := range got[1:] {
			if fact.EventDate != nil {
				t.Errorf("%q was dated %s", fact.Text, fact.EventDate)
			}
		}
	})

	t.Run("InstructionsHaveNoEffect", func(t *testing.T) {
		t.Parallel()
		got, err := New().Extract(t.Context(), model.Request{Messages: []model.Message{user("I like tea.")}, Instructions: "Keep nothing. canary"})
		if err != nil || len(got.Facts) != 1 || strings.Contains(got.Facts[0].Text, "canary") {
			t.Fatalf("got %q, %v", textsOf(got.Facts), err)
		}
	})

	t.Run("ItIsLocalAndCostsNothing", func(t *testing.T) {
		t.Parallel()
		e := New()
		got, err := e.Extract(t.Context(), model.Request{Messages: []model.Message{user("I like tea.")}})
		if err != nil || got.Usage.Calls != 0 || got.Usage.TokensIn != 0 || !e.Local() || e.Provider() != "offline" || e.Check(t.Context()) != nil {
			t.Fatalf("usage %+v, %v", got.Usage, err)
		}
	})

	t.Run("ACancelledCallEnds", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := New().Extract(ctx, model.Request{Messages: []model.Message{user("I like tea.")}})
		var failure *model.Error
		if !errors.As(err, &failure) || failure.Class != task.Shutdown {
			t.Fatalf("got %v", err)
		}
	})

	t.Run("LongNamesAreNoNames", func(t *testing.T) {
		t.Parallel()
		got := factsOf(t, model.Message{Role: "user", Name: strings.Repeat("x", 200), Content: "I like tea."})
		if len(got) != 1 || got[0].Text != "User likes tea" {
			t.Fatalf("got %q", textsOf(got))
		}
	})

	t.Run("LongMessagesTakeNoMoreThanTheirShare", func(t *testing.T) {
		t.Parallel()
		for name, content := range map[string]string{
			"Sentences": strings.Repeat("I like tea. Yes. ", 60_000/17), "OneWord": strings.Repeat("a", 60_000), "Points": strings.Repeat("a. ", 20_000),
			"Chinese": strings.Repeat("我喜欢茶", 5_000), "Commas": strings.Repeat("well, ", 10_000), "Quotes": strings.Repeat("'", 60_000), "Braces": strings.Repeat("I have \n", 8_000),
		} {
			started := time.Now()
			factsOf(t, user(content))
			if took := time.Since(started); took > 20*time.Second { // some 100 ms, and minutes if the work grew with the square
				t.Errorf("%s took %s", name, took)
			}
		}
	})
}

// TestExamples reads the files a visitor tries first.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../examples/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			messages := readConversation(t, raw)
			facts := factsOf(t, messages...)
			if strings.Contains(file, "smalltalk") != (len(facts) == 0) {
				t.Fatalf("%d facts: %q", len(facts), textsOf(facts))
			}
			if len(facts) >= len(messages) {
				t.Errorf("%d facts out of %d messages: most of it should be small talk", len(facts), len(messages))
			}
			for _, fact := range facts {
				if strings.Contains(strings.ToLower(fact.Text), "heron") {
					t.Errorf("private chatter became the fact %q", fact.Text)
				}
			}
		})
	}
}

func readConversation(t *testing.T, raw []byte) []model.Message {
	t.Helper()
	type turn struct{ Role, Name, Content string }
	var turns []turn
	if json.Unmarshal(raw, &turns) != nil {
		var wrapped struct{ Messages []turn }
		if err := json.Unmarshal(raw, &wrapped); err != nil {
			t.Fatal(err)
		}
		turns = wrapped.Messages
	}
	var messages []model.Message
	for _, turn := range turns {
		messages = append(messages, model.Message(turn))
	}
	return messages
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		"I like tea", "I'm Anna", "Ich mag Tee", "Mir gefällt es", "me gusta", "Tengo", "j'ai", "je n'", "我喜欢", "が好きです", "remember that", "My", "I' ", "' '", "Ümlaut. 3. Mai",
	} {
		f.Add(seed, "Ann")
	}
	extractor := New()
	f.Fuzz(func(t *testing.T, content, name string) {
		got, err := extractor.Extract(context.Background(), model.Request{Messages: []model.Message{{Role: "user", Name: name, Content: content}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, fact := range got.Facts {
			if strings.TrimSpace(fact.Text) == "" || utf8.ValidString(content) && utf8.ValidString(name) && !utf8.ValidString(fact.Text) {
				t.Fatalf("fact %q", fact.Text)
			}
		}
	})
}
