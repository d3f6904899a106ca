package offline

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestFrench(t *testing.T) {
	t.Parallel()
	keeps(t, []kept{
		{"J'aime le café.", "L'utilisateur aime le café", memory.TypePreference},
		{"Je n’aime pas les olives.", "L'utilisateur n'aime pas les olives", memory.TypePreference},
		{"Bonjour, je m'appelle Chloé.", "L'utilisateur s'appelle Chloé", memory.TypeIdentity},
		{"Mon prénom est Luc.", "L'utilisateur s'appelle Luc", memory.TypeIdentity},
		{"J'habite à Lyon avec ma femme.", "L'utilisateur habite à Lyon avec sa femme", memory.TypeFact},
		{"Je suis infirmière dans un hôpital.", "L'utilisateur est infirmière dans un hôpital", memory.TypeIdentity},
		{"Je suis allergique aux arachides.", "L'utilisateur est allergique aux arachides", memory.TypeFact},
		{"J'ai 34 ans.", "L'utilisateur a 34 ans", memory.TypeIdentity},
		{"J'ai deux enfants et un chien.", "L'utilisateur a deux enfants et un chien", memory.TypeFact},
		{"Je ne mange pas de viande.", "L'utilisateur ne mange pas de viande", memory.TypePreference},
		{"J'ai déménagé à Nantes l'année dernière.", "L'utilisateur a déménagé à Nantes l'année dernière", memory.TypeEvent},
		{"Je me suis marié en juin.", "L'utilisateur s'est marié en juin", memory.TypeEvent},
		{"Nous avons décidé d'utiliser Postgres.", "L'utilisateur dit : Nous avons décidé d'utiliser Postgres", memory.TypeDecision},
		{"J'ai décidé de quitter mon travail.", "L'utilisateur a décidé de quitter son travail", memory.TypeDecision},
		{"Je veux me marier au printemps.", "L'utilisateur veut se marier au printemps", memory.TypeGoal},
		{"Je vais courir le marathon de Paris.", "L'utilisateur va courir le marathon de Paris", memory.TypeGoal},
		{"Je dois renouveler mon passeport avant lundi.", "L'utilisateur doit renouveler son passeport avant lundi", memory.TypeTodo},
		{"Ma sœur habite à Rome.", "L'utilisateur dit : Ma sœur habite à Rome", memory.TypeFact},
		{"Souviens-toi que je préfère le thé vert.", "L'utilisateur préfère le thé vert", memory.TypePreference},
		{"J'ai une maison à Lyon.", "L'utilisateur a une maison à Lyon", memory.TypeFact},
		{"Depuis 2019, je travaille à Bordeaux.", "Depuis 2019, l'utilisateur travaille à Bordeaux", memory.TypeFact},
	})
	leaves(t, []string{
		"Bonjour, comment ça va ?", "Salut !", "Merci beaucoup, c'était utile.", "Quelle est la capitale de la France ?", "Peux-tu m'écrire un poème ?",
		"S'il te plaît, résume ce texte.", "Raconte-moi une blague.", "J'ai une question.", "J'ai besoin d'aide pour mes devoirs.", "Je voudrais savoir comment ça marche.",
		"Je vais bien, merci.", "Je ne sais pas.", "Oui, bien sûr.", "Il fait beau.", "J'aime ta réponse.", "Je dois y aller.", "À demain.",
		"Paris est la capitale de la France.", "D'accord, parfait.", "Comment cuire du riz ?", "Je suis à la maison.", "J'ai sommeil.", "Je regarde ça.",
	})
}
