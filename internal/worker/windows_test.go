package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/model"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	turn := func(role, content string) model.Message { return model.Message{Role: role, Content: content} }
	const limit = 4_000

	t.Run("AShortConversationIsOneWindow", func(t *testing.T) {
		t.Parallel()
		messages := []model.Message{turn("user", strings.Repeat("a", limit-2*turnChars)), turn("assistant", "")}
		got := windowsOf(messages, limit)
		if len(got) != 1 || !slices.Equal(got[0], messages) {
			t.Errorf("%d windows", len(got))
		}
		if got := windowsOf(nil, limit); len(got) != 1 {
			t.Errorf("no message became %d windows", len(got))
		}
	})

	t.Run("BordersLieBetweenMessagesAndTheLastOnesComeAgain", func(t *testing.T) {
		t.Parallel()
		var messages []model.Message
		for i := range 40 {
			messages = append(messages, turn("user", fmt.Sprintf("%02d %s", i, strings.Repeat("word ", 40))))
		}
		windows := windowsOf(messages, limit)
		if len(windows) < 3 {
			t.Fatalf("%d windows", len(windows))
		}
		next := 0
		for i, window := range windows {
			for _, m := range window {
				if !slices.Contains(messages, m) {
					t.Fatalf("window %d holds a part of a message: %q", i, m.Content)
				}
			}
			begins := slices.Index(messages, window[0])
			if i > 0 && next-begins != 2 { // 2 × 243 characters fit into an eighth of 4,000
				t.Errorf("window %d begins with %d messages of the one before", i, next-begins)
			}
			next = slices.Index(messages, window[len(window)-1]) + 1
		}
		if next != len(messages) {
			t.Errorf("%d of %d messages were read", next, len(messages))
		}
	})

	numbered := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	t.Run("AHugeMessageIsCutBetweenSentencesAndItsLastOnesComeAgain", func(t *testing.T) {
		t.Parallel()
		windows := windowsOf([]model.Message{{Role: "user", Name: "Ann", Content: numbered(600, "We like tree number %d. ")}}, limit)
		for i, window := range windows {
			if len(window) != 1 || window[0].Role != "user" || window[0].Name != "Ann" {
				t.Fatalf("window %d is %+v", i, window)
			}
			text := window[0].Content
			if !strings.HasPrefix(text, "We like") || !strings.HasSuffix(text, ". ") {
				t.Errorf("window %d holds a part of a sentence", i)
			}
			if i == 0 {
				continue
			}
			if n := shared(windows[i-1][0].Content, text); n < limit/pieceShare || n > limit/overlapShare {
				t.Errorf("window %d repeats %d characters", i, n)
			}
		}
	})

	// noise is text without a repetition.
	noise := func(n int, from, to rune) string {
		random := rand.New(rand.NewPCG(1, 2))
		text := make([]rune, n)
		for i := range text {
			text[i] = from + rune(random.IntN(int(to-from)))
		}
		return string(text)
	}
	turns := func(n int, make func(i int) model.Message) []model.Message {
		var all []model.Message
		for i := range n {
			all = append(all, make(i))
		}
		return all
	}
	filled := func(size int) func(int) model.Message {
		return func(i int) model.Message { return turn("user", fmt.Sprintf("%0*d", size, i)) }
	}
	for name, messages := range map[string][]model.Message{
		"Sentences":    {turn("user", numbered(700, "We all like tree number %d. "))},
		"Words":        {turn("user", numbered(3_000, "word%d "))},
		"OneWord":      {turn("user", noise(12_345, 'a', 'z'))},
		"Chinese":      {turn("user", noise(9_000, 0x4e00, 0x9fa0))},
		"Combining":    {turn("user", "e"+noise(9_000, 0x300, 0x36f))},
		"TinyTurns":    turns(500, func(i int) model.Message { return turn("user", fmt.Sprint(i)) }),
		"EmptyTurns":   turns(500, func(i int) model.Message { return turn(fmt.Sprint("r", i), "") }),
		"SmallAndHuge": {turn("user", "first"), turn("assistant", numbered(700, "Tree %d is tall. ")), turn("user", "last")},
		"JustTooLong":  {turn("user", noise(limit, 'a', 'z')), turn("assistant", noise(limit, 'A', 'Z'))},
		"EighthsExact": turns(20, filled(limit/8-turnChars)),
		"WholeExact":   turns(4, filled(limit-limit/8-turnChars)),
		"LongestNames": turns(9, func(i int) model.Message {
			return model.Message{Role: "user", Name: strings.Repeat("n", 200), Content: numbered(300, fmt.Sprint(i)+"-%d ")}
		}),
		"InvalidIsKept": {turn("user", numbered(2_000, "a\xff%d "))},
	} {
		t.Run("HoldEverythingWithinTheLimit/"+name, func(t *testing.T) {
			t.Parallel()
			windows := windowsOf(messages, limit)
			if len(windows) < 2 {
				t.Fatal("it was to be cut")
			}
			for i, window := range windows {
				size := 0
				for _, m := range window {
					size += turnOf(m) + utf8.RuneCountInString(m.Content)
				}
				if size > limit {
					t.Errorf("window %d has %d characters", i, size)
				}
			}
			if got, want := reassembled(t, windows), flat(messages); got != want {
				t.Errorf("the windows hold %d bytes of %d", len(got), len(want))
			}
		})
	}
}

// flat is a conversation as one text.
func flat(messages []model.Message) string {
	var all strings.Builder
	for _, m := range messages {
		all.WriteString("\x00" + m.Role + m.Name + "\x00" + m.Content)
	}
	return all.String()
}

// reassembled puts windows together by what they overlap in: with the messages before, or, where a window begins in
// the middle of a message, with that message. It reports a window that has nothing new.
func reassembled(t *testing.T, windows [][]model.Message) string {
	t.Helper()
	all := flat(windows[0])
	for i, window := range windows[1:] {
		next := flat(window)
		_, behindTurn, _ := strings.Cut(next[1:], "\x00")
		if n := shared(all, next); n > 0 {
			next = next[n:]
		} else {
			next = behindTurn[shared(all, behindTurn):]
		}
		if next == "" {
			t.Errorf("window %d has nothing new", i+1)
		}
		all += next
	}
	return all
}

// shared returns how much of the beginning of text stands at the end of all.
func shared(all, text string) int {
	for n := min(len(all), len(text)); n > 0; n-- {
		if strings.HasSuffix(all, text[:n]) {
			return n
		}
	}
	return 0
}
