package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/examples"
)

func TestConversation(t *testing.T) {
	t.Parallel()
	hello := []message{{Role: "user", Content: "Hello"}}
	for name, c := range map[string]struct {
		text string
		want []message // nil: refused
	}{
		"ListOfMessages":       {`[{"role":"user","content":"Hello"}]`, hello},
		"ObjectWithMessages":   {`{"model":"x","messages":[{"role":"user","content":"Hello"}]}`, hello},
		"OneObjectALine":       {"{\"role\":\"user\",\"content\":\"Hello\"}\n{\"role\":\"assistant\",\"content\":\"Hi\"}\n", append(slices.Clone(hello), message{Role: "assistant", Content: "Hi"})},
		"PartsOfText":          {`[{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"image_url","image_url":{"url":"x"}}]}]`, hello},
		"ToolCallIsLeftOut":    {`[{"role":"assistant","content":null,"tool_calls":[]},{"role":"user","content":"Hello"}]`, hello},
		"PlainText":            {"Hello", hello},
		"ByteOrderMark":        {"\xef\xbb\xbfHello", hello},
		"Empty":                {" \n", nil},
		"NothingSaid":          {`[{"role":"user","content":" "}]`, nil},
		"NoRole":               {`[{"content":"Hello"}]`, nil},
		"BrokenJSON":           {`[{"role":`, nil},
		"ContentOfAnotherKind": {`[{"role":"user","content":7}]`, nil},
		"InvalidUTF8":          {"\xff\xfe", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseConversation([]byte(c.text))
			if (err != nil) != (c.want == nil) || err == nil && !slices.Equal(got.messages, c.want) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if leftOut := strings.Contains(name, "LeftOut"); err == nil && (got.leftOut == 1) != leftOut {
				t.Fatalf("%d left out", got.leftOut)
			}
		})
	}

	t.Run("TheExampleIsOne", func(t *testing.T) {
		t.Parallel()
		if got, err := parseConversation(examples.Conversation()); err != nil || len(got.messages) < 5 {
			t.Fatalf("got %d messages, %v", len(got.messages), err)
		}
	})
}

// TestStandardInput holds what the demo takes for a conversation although nobody named it.
func TestStandardInput(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, text string) *os.File {
		name := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}

	t.Run("JSONIsTaken", func(t *testing.T) {
		t.Parallel()
		text := ` [{"role":"user","content":"Hello"}]`
		if got := string(waiting(file(t, text))); got != strings.TrimSpace(text) {
			t.Fatalf("got %q", got)
		}
	})

	t.Run("TheRestOfAScriptIsLeftAlone", func(t *testing.T) {
		t.Parallel()
		f := file(t, "make test\n")
		if got := waiting(f); got != nil {
			t.Fatalf("got %q", got)
		}
		rest := make([]byte, 4)
		if _, err := f.Read(rest); err != nil || string(rest) != "make" {
			t.Fatalf("the script goes on with %q, %v", rest, err)
		}
	})

	t.Run("EmptyIsNothing", func(t *testing.T) {
		t.Parallel()
		if got := waiting(file(t, "")); got != nil {
			t.Fatalf("got %q", got)
		}
	})

	t.Run("SilentPipeIsNotWaitedFor", func(t *testing.T) {
		t.Parallel()
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = read.Close(), write.Close() })
		if got := waiting(read); got != nil {
			t.Fatalf("got %q", got)
		}
	})
}
