package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// metrics reads what a process shows its operator.
func (s *system) metrics(p *testkit.Process) string {
	s.t.Helper()
	p.WaitForOutput("admin server listens", patience)
	address := regexp.MustCompile(`"address":"([^"]+)"[^\n]*admin server listens`).FindStringSubmatch(p.Stderr())
	if address == nil {
		s.t.Fatal("a process doesn't say where its admin server is")
	}
	response, err := http.Get("http://" + address[1] + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// grouped answers how many items of a stage a process has handled, and in how many groups.
func grouped(t *testing.T, metrics, stage string) (items, groups float64) {
	t.Helper()
	for what, into := range map[string]*float64{"sum": &items, "count": &groups} {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^holdfast_group_items_%s\{group="%s"\} (\S+)$`, what, stage)).FindStringSubmatch(metrics)
		if line == nil {
			return 0, 0
		}
		var err error
		if *into, err = strconv.ParseFloat(line[1], 64); err != nil {
			t.Fatal(err)
		}
	}
	return items, groups
}

// TestGroups sees that separate API and worker processes let what comes at the same time share commits, and that a setting
// turns it off.
func TestGroups(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_GROUP_COMMIT="+strconv.FormatBool(on))
			api := s.startAPI("HOLDFAST_ADMIN_LISTEN=127.0.0.1:0")
			const n = 60
			ids := make([]string, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					name := fmt.Sprint("g", i)
					ids[i] = s.add(name, conversation(name, "FACT: "+name))
				})
			}
			all.Wait()
			work := s.startWorker("HOLDFAST_ADMIN_LISTEN=127.0.0.1:0")
			s.allSucceeded(ids)
			for stage, p := range map[string]*testkit.Process{"accept": api, "claim": work, "commit": work, "settle": work} {
				items, groups := grouped(t, s.metrics(p), stage)
				if on != (items > groups) || on && items < n {
					t.Errorf("%s: %v items in %v groups", stage, items, groups)
				}
			}
		})
	}
}
