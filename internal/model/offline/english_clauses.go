package offline

import "regexp"

// joint finds where a clause of the speaker about himself follows another one: "I'm Maya, I work as a nurse and I'm
// planning a trip". Its last group is the beginning of the next clause.
func englishJoint() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:[,;] *(?:and |but |so )?| and | but )((?:i|i'm|i've|i'll|i'd|my) )`)
}

// clauses cuts a sentence where a clause of its own begins that says something worth keeping without the rest of the
// sentence. Otherwise the sentence is its only clause.
func (e *english) clauses(text string) []string {
	text = replaceWords(dropLead(text, e.fillers), e.typed)
	var found []string
	begin := 0
	for _, at := range e.joint.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, text[begin:at[0]])
		begin = at[2]
	}
	found = append(found, text[begin:])
	for i, clause := range found {
		if len(found) == 1 {
			break
		}
		// A word that points elsewhere in the sentence ("I bought a car and I drive it") loses its meaning alone.
		points := i > 0 && hasWord(clause, "it", "that", "this", "them", "those", "these", "there", "then", "both", "too",
			"also", "one", "he", "she", "him", "her", "his", "its", "they", "their", "otherwise", "instead")
		if _, kept := e.read(clause, speaker{}); !kept || points {
			return []string{text}
		}
	}
	return found
}
