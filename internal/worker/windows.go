package worker

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"

	"github.com/holdfast-memory/holdfast/internal/model"
)

const (
	// overlapShare is the part of a window that is read again at the beginning of the next one, so that what a turn
	// refers to is not lost at the border. A larger part would cost calls, a smaller one seldom holds a whole turn.
	overlapShare = 8
	// pieceShare is the part of a window that is never divided; two pieces fit into an overlap.
	pieceShare = 2 * overlapShare
	// turnChars is what a turn takes in the prompt beside its name and text: quotes, names of members, a line's end.
	turnChars = 40
)

// windowsOf cuts a conversation into overlapping windows of at most limit characters, in order; together they hold
// all of it. A border lies between two messages where that is possible. A message that is too long for a window is
// cut between sentences, a sentence that is too long between words, and a word that is too long anywhere.
func windowsOf(messages []model.Message, limit int) [][]model.Message {
	total := 0
	for _, m := range messages {
		total += turnOf(m) + utf8.RuneCountInString(m.Content)
	}
	if total <= limit {
		return [][]model.Message{messages}
	}
	pieces := piecesOf(messages, limit)
	var windows [][]model.Message
	for start, read := 0, 0; read < len(pieces); start = overlap(pieces, read, limit/overlapShare) {
		read = fill(pieces, start, read, limit)
		windows = append(windows, join(messages, pieces[start:read]))
	}
	return windows
}

// turnOf returns the size of a turn without its text.
func turnOf(m model.Message) int { return turnChars + utf8.RuneCountInString(m.Name) }

// piece is a part of a message that is never divided. Message is the message's place in the conversation.
type piece struct {
	message int
	text    string
	size    int // of the text
	turn    int // of the turn that it needs where a window or its message begins
	first   bool
	whole   int // of a message that is never divided: the number of its pieces; else 1
}

// piecesOf divides all messages. A message that fits into a window behind an overlap stays whole.
func piecesOf(messages []model.Message, limit int) []piece {
	var pieces []piece
	for i, m := range messages {
		texts := chunks(m.Content, limit/pieceShare)
		whole := 1
		if turnOf(m)+utf8.RuneCountInString(m.Content) <= limit-limit/overlapShare {
			whole = len(texts)
		}
		for j, text := range texts {
			p := piece{message: i, text: text, size: utf8.RuneCountInString(text), turn: turnOf(m), first: j == 0, whole: 1}
			if p.first {
				p.whole = whole
			}
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// fill returns where the window ends that begins at start, all before read being overlap. It takes at least one
// piece that no window had before.
func fill(pieces []piece, start, read, limit int) int {
	end, size := start, 0
	for end < len(pieces) {
		next := end + 1
		if end >= read {
			next = end + pieces[end].whole
		}
		cost := costOf(pieces[end:next], end == start)
		if end > read && size+cost > limit {
			break
		}
		end, size = next, size+cost
	}
	return end
}

// costOf returns what pieces take in a window; the first of them needs its turn if it is the window's first.
func costOf(pieces []piece, begins bool) int {
	cost := 0
	for i, p := range pieces {
		cost += p.size
		if p.first || begins && i == 0 {
			cost += p.turn
		}
	}
	return cost
}

// overlap returns where the window begins that reads on at end: as far back as most characters go.
func overlap(pieces []piece, end, most int) int {
	start := end
	for start > 0 && costOf(pieces[start-1:end], true) <= most {
		start--
	}
	return start
}

// join puts pieces back together as the turns that they are of.
func join(messages []model.Message, pieces []piece) []model.Message {
	var turns []model.Message
	for i, p := range pieces {
		if i > 0 && !p.first {
			turns[len(turns)-1].Content += p.text
			continue
		}
		m := messages[p.message]
		turns = append(turns, model.Message{Role: m.Role, Name: m.Name, Content: p.text})
	}
	return turns
}

// chunks cuts text into parts of at most most characters, which together are the text: each as many whole sentences
// as fit, or part of one that doesn't. An empty text is one part.
func chunks(text string, most int) []string {
	var found []string
	from, size, at := 0, 0, 0
	for _, segment := range segments(text, most) {
		n := utf8.RuneCountInString(segment)
		if size > 0 && size+n > most {
			found = append(found, text[from:at])
			from, size = at, 0
		}
		at, size = at+len(segment), size+n
	}
	return append(found, text[from:])
}

// segments returns the sentences of text, those beyond most characters as words, and words beyond it in parts.
func segments(text string, most int) []string {
	var found []string
	for bySentence := sentences.FromString(text); bySentence.Next(); {
		if utf8.RuneCountInString(bySentence.Value()) <= most {
			found = append(found, bySentence.Value())
			continue
		}
		for byWord := words.FromString(bySentence.Value()); byWord.Next(); {
			found = append(found, parts(byWord.Value(), most)...)
		}
	}
	return found
}

// parts cuts text between characters.
func parts(text string, most int) []string {
	var found []string
	from, n := 0, 0
	for at := range text {
		if n == most {
			found = append(found, text[from:at])
			from, n = at, 0
		}
		n++
	}
	return append(found, text[from:])
}
