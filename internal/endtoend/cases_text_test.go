package endtoend

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func textCases() map[string]func(*system) {
	return map[string]func(*system){
		"LoneSurrogate":            loneSurrogate,
		"NULInABody":               nulInBody,
		"NULInTheModelsOutput":     nulInOutput,
		"ChineseStaysChinese":      chineseStays,
		"SearchOfOtherScripts":     searchOfScripts,
		"MessageOfFortyKilobytes":  fortyKilobytes,
		"OneOverlongTextOfTen":     oneOverlongText,
		"OneOverlongItemOfTen":     oneOverlongItem,
		"NothingVisible":           nothingVisible,
		"ContentIsTheWordOfARole":  contentIsARole,
		"OneBadMessageAmongOthers": oneBadMessage,
	}
}

// refuses sends content, written as it is into a JSON string, every way in.
func (s *system) refuses(user, escaped string) {
	s.t.Helper()
	id := s.store(user, "", "before", nil).Results[0].ID
	for i, call := range []struct{ method, path, body string }{
		{"POST", "/v1/memories", `{"user_id":"` + user + `","content":"` + escaped + `"}`},
		{"POST", "/v1/memories", `{"user_id":"` + user + `","content":"` + escaped + `","infer":false}`},
		{"POST", "/v1/memories", `{"user_id":"` + user + `","messages":[{"role":"user","content":"` + escaped + `"}]}`},
		{"PUT", "/v1/memories/" + id, `{"content":"` + escaped + `"}`},
		{"PUT", "/v1/memories/batch", `{"memories":[{"id":"` + id + `","content":"` + escaped + `"}]}`},
	} {
		s.want(s.send(call.method, call.path, fmt.Sprint(user, "-", i), call.body), http.StatusBadRequest)
	}
	if a := s.twin("add", "", `{"items":[{"text":"`+escaped+`"}]}`); a.status != http.StatusBadRequest {
		s.t.Fatalf("item: %d %s", a.status, a.body)
	}
	if n := s.tasksOf(user); n != 1 || s.texts(user) != "before" {
		s.t.Fatalf("%d commands, records %q", n, s.texts(user))
	}
}

func loneSurrogate(s *system) {
	s.refuses("surrogate", `\ud83d`)
	s.refuses("surrogate-behind", `a\ude00`)
}

func nulInBody(s *system) { s.refuses("nul", `a\u0000b`) }

func nulInOutput(s *system) {
	s.stub.Always(withMarker("nul-output"), stubmodel.Reply(stubmodel.Content(`{"facts":["a\u0000b","c"]}`)))
	e := s.succeeded(s.add("nul-output", conversation("nul-output", "nul-output")))
	if got := s.texts("nul-output"); got != "ab|c" || len(e.Results) != 2 {
		s.t.Fatalf("records %q, event %+v", got, e)
	}
}

func chineseStays(s *system) {
	const text = "我喜欢喝咖啡"
	if v := s.store("chinese-verbatim", "", text, nil); v.Results[0].Memory != text {
		s.t.Fatalf("stored %+v", v)
	}
	s.succeeded(s.add("chinese", conversation("chinese", "FACT: "+text)))
	if s.texts("chinese") != text || s.texts("chinese-verbatim") != text {
		s.t.Fatalf("records %q and %q", s.texts("chinese"), s.texts("chinese-verbatim"))
	}
	calls := s.stub.Calls(withMarker(text))
	if len(calls) != 1 || !strings.Contains(calls[0].System, "Never translate") {
		s.t.Fatalf("%d calls, or the model isn't told to keep the language", len(calls))
	}
}

func searchOfScripts(s *system) {
	s.remember("scripts", "我喜欢喝咖啡", "أحب القهوة كثيرا", "I like tea")
	for query, want := range map[string]string{"咖啡": "我喜欢喝咖啡", "قهوة": "أحب القهوة كثيرا"} {
		got := s.search(map[string]any{"query": query, "user_id": "scripts", "mode": "lexical"})
		if got.texts() != want {
			s.t.Errorf("%s finds %q", query, got.texts())
		}
	}
}

func fortyKilobytes(s *system) {
	text := "FACT: begins\n" + strings.Repeat("some words of no weight\n", 1700) + "FACT: ends"
	e := s.succeeded(s.add("forty", conversation("forty", text)))
	if got := s.texts("forty"); got != "begins|ends" || len(e.Results) != 2 || e.Usage.Settled != 2 {
		s.t.Fatalf("records %q, event %+v", got, e)
	}
	s.succeeded(s.add("forty-next", conversation("forty", "FACT: next")))
}

// oneOverlongText lets the embedder refuse one of ten texts: the nine others are found by meaning, it by its words.
func oneOverlongText(s *system) {
	s.stub.RefuseTexts("overlong")
	lines := make([]string, 10)
	for i := range lines {
		lines[i] = fmt.Sprint("FACT: plain ", i)
	}
	lines[4] = "FACT: " + strings.Repeat("overlong ", 200) + "end"
	e := s.succeeded(s.add("one-of-ten", conversation("one-of-ten", lines...)))
	if len(e.Results) != 10 {
		s.t.Fatalf("event %+v", e)
	}
	if n := one[int64](s, `SELECT count(*) FROM memories m JOIN memory_vectors v ON v.memory_id = m.id WHERE m.user_id = 'one-of-ten' AND NOT v.skipped`); n != 9 {
		s.t.Fatalf("%d of ten have a vector", n)
	}
	if got := s.search(map[string]any{"query": "overlong", "user_id": "one-of-ten", "mode": "lexical"}); len(got.Results) != 1 {
		s.t.Fatalf("the tenth is not found by its words: %q", got.texts())
	}
}

// oneOverlongItem sends ten items, one beyond the limit: the refusal names it, and none is taken half.
func oneOverlongItem(s *system) {
	items := make([]string, 10)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":"ten-%d","text":"FACT: ten"}`, i)
	}
	items[7] = `{"id":"ten-7","text":"` + strings.Repeat("a", 100_001) + `"}`
	s.want(s.twin("add", "", `{"items":[`+strings.Join(items, ",")+`]}`), http.StatusBadRequest, "/items/7/text")
	if n := one[int64](s, `SELECT count(*) FROM items WHERE item_id LIKE 'ten-%'`); n != 0 {
		s.t.Fatalf("%d items were taken", n)
	}
}

func nothingVisible(s *system) {
	for i, blank := range []string{``, `  \n`, `\u200b\u200d\ufeff`} {
		s.refuses(fmt.Sprint("blank-", i), blank)
	}
}

func contentIsARole(s *system) {
	for _, word := range []string{"system", "user", "assistant"} {
		s.remember("role-"+word, word)
		if got := s.texts("role-" + word); got != word {
			s.t.Errorf("%q is stored as %q", word, got)
		}
	}
}

// oneBadMessage puts a blank message among others: they are stored, it is not.
func oneBadMessage(s *system) {
	if ids := s.remember("among", "one", " \n", "two"); len(ids) != 2 || s.texts("among") != "one|two" {
		s.t.Fatalf("records %q", s.texts("among"))
	}
}
