package endtoend

import (
	"bufio"
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
)

// spy knows which word was sent where, and collects what comes out.
type spy struct {
	s     *system
	words map[string]string // by the name of the place that a word entered
	token string            // the operator's
	hook  *receiver

	mu      sync.Mutex
	outputs map[string]*bytes.Buffer
}

func newSpy(s *system) *spy {
	return &spy{s: s, words: map[string]string{}, outputs: map[string]*bytes.Buffer{}}
}

// word returns the word of a place, a new one for a place that has none.
func (y *spy) word(place string) string {
	if y.words[place] == "" {
		y.words[place] = canary.New()
	}
	return y.words[place]
}

// fill puts words where <place> stands.
func (y *spy) fill(text string) string {
	return regexp.MustCompile(`<[a-z][a-z0-9 ]*>`).ReplaceAllStringFunc(text, func(place string) string {
		return y.word(place[1 : len(place)-1])
	})
}

// hears adds something to an output.
func (y *spy) hears(output string, text []byte) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.outputs[output] == nil {
		y.outputs[output] = &bytes.Buffer{}
	}
	y.outputs[output].Write(append(text, '\n'))
}

// hearsAnswer adds an answer to an output, with its header.
func (y *spy) hearsAnswer(output string, a answer) {
	y.hears(output, a.body)
	for name, values := range a.header {
		y.hears(output, []byte(name+": "+strings.Join(values, ", ")))
	}
}

// asks sends a request in which <place> stands for words. What is refused is an output.
func (y *spy) asks(authorization, method, path, body string, header ...string) answer {
	y.s.t.Helper()
	for i := range header {
		header[i] = y.fill(header[i])
	}
	a := y.s.knock(y.fill(authorization), y.fill(method), y.fill(path), y.fill(body), header...)
	if refused(path, a) {
		y.hearsAnswer("refusals", a)
	}
	return a
}

// refused tells whether an answer is a refusal. Those of the tools may have the status of an answer.
func refused(path string, a answer) bool {
	said := string(a.body)
	return a.status >= http.StatusBadRequest || path == "/mcp" && (strings.Contains(said, `"error":`) || strings.Contains(said, `"isError":true`))
}

// listens collects every message of NATS from now on, as it is sent.
func (y *spy) listens() {
	y.s.t.Helper()
	connection, err := nats.Connect(y.s.nats.URL())
	if err != nil {
		y.s.t.Fatal(err)
	}
	y.s.t.Cleanup(connection.Close)
	if _, err := connection.Subscribe(">", func(m *nats.Msg) {
		y.hears("messages of NATS", []byte(m.Subject+" "+m.Reply))
		for name, values := range m.Header {
			y.hears("messages of NATS", []byte(name+": "+strings.Join(values, ", ")))
		}
		y.hears("messages of NATS", m.Data)
	}); err != nil {
		y.s.t.Fatal(err)
	}
	if err := connection.Flush(); err != nil {
		y.s.t.Fatal(err)
	}
}

// follows collects the stream of events until the test ends.
func (y *spy) follows() {
	y.s.t.Helper()
	request, err := http.NewRequestWithContext(y.s.t.Context(), http.MethodGet, y.s.api+"/v1/events/stream", nil)
	if err != nil {
		y.s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+y.s.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		y.s.t.Fatal(err)
	}
	y.hearsAnswer("the stream", answer{header: response.Header})
	go func() {
		defer response.Body.Close()
		lines := bufio.NewReader(response.Body)
		for {
			line, err := lines.ReadBytes('\n') // whole lines, so that no word is cut in two
			y.hears("the stream", line)
			if err != nil {
				return
			}
		}
	}()
}

// admins reads what a process shows its operator.
func (y *spy) admins(p *testkit.Process) {
	y.s.t.Helper()
	p.WaitForOutput("admin server listens", patience)
	address := regexp.MustCompile(`"address":"([^"]+)"[^\n]*admin server listens`).FindStringSubmatch(p.Stderr())
	if address == nil {
		y.s.t.Fatal("a process doesn't say where its admin server is")
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		response, err := http.Get("http://" + address[1] + path)
		if err != nil {
			y.s.t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(response.Body)
		_ = response.Body.Close()
		if err != nil {
			y.s.t.Fatal(err)
		}
		y.hearsAnswer(path, answer{header: response.Header, body: body.Bytes()})
	}
}

// reads adds files to an output.
func (y *spy) reads(output, path string) {
	y.s.t.Helper()
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // NATS replaces its files meanwhile
		}
		if text, err := os.ReadFile(path); err == nil {
			y.hears(output, text)
		}
		return nil
	})
	if err != nil {
		y.s.t.Fatal(err)
	}
}

// places returns in which tables each word is.
func (y *spy) places() map[string]string {
	y.s.t.Helper()
	conn, err := y.s.sql.Acquire(y.s.t.Context())
	if err != nil {
		y.s.t.Fatal(err)
	}
	defer conn.Release()
	tables, err := canary.Tables(y.s.t.Context(), conn.Conn())
	if err != nil {
		y.s.t.Fatal(err)
	}
	places := map[string]string{}
	for place, word := range y.words {
		var in []string
		for _, table := range slices.Sorted(maps.Keys(tables)) {
			if bytes.Contains(tables[table], []byte(word)) {
				in = append(in, table)
			}
		}
		places[place] = strings.Join(in, " ")
	}
	return places
}

// finds holds that each word is in the tables that it belongs in, in all of them and in no other.
func (y *spy) finds(when string, belongs func(trace) string) {
	y.s.t.Helper()
	found := y.places()
	known := map[string]bool{}
	for _, tr := range traces() {
		known[tr.place] = true
		if _, sent := y.words[tr.place]; sent && found[tr.place] != belongs(tr) {
			y.s.t.Errorf("%s the word of %q is in %q, want %q", when, tr.place, found[tr.place], belongs(tr))
		}
	}
	for place, in := range found {
		if !known[place] && in != "" {
			y.s.t.Errorf("%s the word of %q is in %q", when, place, in)
		}
	}
}

// outputs are all that there are, each with a text that must be in it: one that isn't there was not collected.
func outputs() map[string]string {
	return map[string]string{
		"logs of the API": `"message":"request"`, "logs of workers": `"message":"claim ended"`, "logs of repair": "message",
		"output of commands": "audit", "log of PostgreSQL": "database system is ready to accept connections", "refusals": `"code":"INVALID_BODY"`,
		"messages of NATS": "Nats-Msg-Id", "store of NATS": "", "/metrics": "holdfast_", "/healthz": "ok", "/readyz": "ready",
		"bodies of webhooks": "event.succeeded", "the stream": "event.succeeded", "pages": "openapi", "the log of acts": "scope.erase",
		"requests to the model": "", "spans": "claim memory_infer",
	}
}

// told tells whether an output has all words that it must have.
func (y *spy) told(output string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, tr := range traces() {
		if slices.Contains(tr.outputs, output) && (y.outputs[output] == nil || !bytes.Contains(y.outputs[output].Bytes(), []byte(y.words[tr.place]))) {
			return false
		}
	}
	return true
}

// silent holds that no word is in an output but where its trace allows it, and that it is there then.
func (y *spy) silent() {
	y.s.t.Helper()
	known := map[string]trace{}
	for _, tr := range traces() {
		known[tr.place] = tr
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for output, sign := range outputs() {
		if y.outputs[output] == nil || !bytes.Contains(y.outputs[output].Bytes(), []byte(sign)) {
			y.s.t.Errorf("%s lack %q: nothing was collected", output, sign)
			continue
		}
		text := canary.Readable(y.outputs[output].Bytes())
		for place, word := range y.words {
			is, must := bytes.Contains(text, []byte(word)), slices.Contains(known[place].outputs, output)
			if is != must && !slices.Contains(known[place].perhaps, output) {
				y.s.t.Errorf("the word of %q is in %s: %t, want %t", place, output, is, must)
			}
		}
	}
}
