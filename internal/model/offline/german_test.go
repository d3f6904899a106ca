package offline

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestGerman(t *testing.T) {
	t.Parallel()
	keeps(t, []kept{
		{"Meine Tochter verträgt keine Laktose.", "Nutzer sagt: Meine Tochter verträgt keine Laktose", memory.TypeFact},
		{"Am liebsten baue ich Stühle.", "Am liebsten baut der Nutzer Stühle", memory.TypeFact},
		{"Ich mag Kaffee.", "Nutzer mag Kaffee", memory.TypePreference},
		{"Hallo, ich heiße Jörg.", "", ""},
		{"Ich heiße Jörg.", "Nutzer heißt Jörg", memory.TypeIdentity},
		{"Mein Name ist Anna Schmidt.", "Nutzer heißt Anna Schmidt", memory.TypeIdentity},
		{"Übrigens, ich wohne mit meiner Frau in Köln.", "Nutzer wohnt mit seiner Frau in Köln", memory.TypeFact},
		{"Ich arbeite als Krankenpfleger in einem Krankenhaus.", "Nutzer arbeitet als Krankenpfleger in einem Krankenhaus", memory.TypeFact},
		{"Ich bin allergisch gegen Erdnüsse.", "Nutzer ist allergisch gegen Erdnüsse", memory.TypeFact}, //nolint:misspell // German
		{"Seit 2019 wohne ich in Hamburg.", "Seit 2019 wohnt der Nutzer in Hamburg", memory.TypeFact},
		{"Ich bin am 3. Mai nach Berlin gezogen.", "Nutzer ist am 3. Mai nach Berlin gezogen", memory.TypeEvent},
		{"Wir haben beschlossen, Postgres zu nutzen.", "Nutzer sagt: Wir haben beschlossen, Postgres zu nutzen", memory.TypeDecision},
		{"Ich habe mich entschieden, den Job zu wechseln.", "Nutzer hat sich entschieden, den Job zu wechseln", memory.TypeDecision},
		{"Ich möchte nächstes Jahr Japanisch lernen.", "Nutzer möchte nächstes Jahr Japanisch lernen", memory.TypeGoal},
		{"Meine Schwester wohnt in Rom.", "Nutzer sagt: Meine Schwester wohnt in Rom", memory.TypeFact},
		{"Mein Lieblingsessen ist Lasagne.", "Nutzer sagt: Mein Lieblingsessen ist Lasagne", memory.TypePreference},
		{"Ich interessiere mich für Kunst.", "Nutzer interessiert sich für Kunst", memory.TypePreference},
		{"Bitte merk dir, dass ich kein Fleisch esse.", "Nutzer isst kein Fleisch", memory.TypePreference},
		{"Ich muss bis Freitag die Steuererklärung abgeben.", "Nutzer muss bis Freitag die Steuererklärung abgeben", memory.TypeTodo},
		{"Mir gefällt klassische Musik.", "Dem Nutzer gefällt klassische Musik", memory.TypePreference},
		{"Nächste Woche fliege ich nach Madrid.", "Nächste Woche fliegt der Nutzer nach Madrid", memory.TypeEvent},
		{"Ich heiße Max und wohne in Bonn.", "Nutzer heißt Max und wohnt in Bonn", memory.TypeIdentity},
		{"Ich mag das Meer.", "Nutzer mag das Meer", memory.TypePreference},
		{"Der Umzug ist am Samstag.", "Der Umzug ist am Samstag", memory.TypeEvent},
	})
	leaves(t, []string{
		"Hallo, wie geht es dir?", "Guten Morgen!", "Danke, das war hilfreich.", "Vielen Dank!", "Was ist die Hauptstadt von Frankreich?",
		"Kannst du mir ein Gedicht schreiben?", "Bitte fasse den Text zusammen.", "Erzähl mir einen Witz.", "Ich habe eine Frage.", "Ich bin müde.",
		"Ich brauche Hilfe bei den Hausaufgaben.", "Ich möchte wissen, wie das geht.", "Ich weiß nicht.", "Ja, genau.", "Das Wetter ist schön.",
		"Ich habe das verstanden.", "Wie koche ich Reis?", "Ich muss los.", "Bis morgen!", "Paris ist die Hauptstadt von Frankreich.", "Okay, super.", "Ich bin verwirrt.", "Ich komme gleich wieder.", "Ich mag dich.", "Ich mag das.", "Mir gefällt das sehr.", "Ich habe das verstanden.",
	})
}
