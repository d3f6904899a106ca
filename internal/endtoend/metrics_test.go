package endtoend

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// maxValues is how many values a label of a metric may have after a short busy run: there are some seventy routes, and
// nothing else comes near.
const maxValues = 100

// scrape reads a process's metrics as Prometheus does.
func (s *system) scrape(p *testkit.Process) map[string]*dto.MetricFamily {
	s.t.Helper()
	p.WaitForOutput("admin server listens", patience)
	address := regexp.MustCompile(`"address":"([^"]+)"[^\n]*admin server listens`).FindStringSubmatch(p.Stderr())
	response, err := http.Get("http://" + address[1] + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return families
}

// TestMetricsAreBounded reads the metrics of all processes after a run with many callers' words in it, and holds that no
// label has grown with them and that everything is documented.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_ADMIN_LISTEN=127.0.0.1:0", "HOLDFAST_REPAIR_INTERVAL=100ms")
	api, worker, repair := s.startAPI(), s.startWorker(), s.start("repair")
	repair.WaitForOutput(`"message":"ready"`, patience)
	var events []string
	const commands = 30
	for i := range commands {
		body := conversation(fmt.Sprintf("user-%d-zanzibar", i), fmt.Sprintf("FACT: zanzibar %d", i))
		body["agent_id"] = fmt.Sprintf("agent-%d-zanzibar", i)
		events = append(events, s.add(fmt.Sprintf("zanzibar-%d", i), body))
	}
	for i, id := range events {
		s.succeeded(id)
		s.do("GET", fmt.Sprintf("/v1/zanzibar/%d", i), "", nil)                    // no route
		s.do(fmt.Sprintf("ZANZIBAR%d", i), "/v1/memories", "", nil)                // no method
		s.do("GET", fmt.Sprintf("/v1/memories?user_id=zanzibar-%d", i), "", nil)   // a route with a filter
		s.do("POST", "/v1/memories", fmt.Sprint("bad", i), map[string]any{"x": i}) // refused
	}
	s.until("the worker has counted the ends, which clients may know first", func() bool {
		f := s.scrape(worker)["holdfast_event_seconds"]
		return f != nil && f.GetMetric()[0].GetHistogram().GetSampleCount() == commands
	})
	s.until("repair has made a round", func() bool { return s.scrape(repair)["holdfast_repair_total"] != nil })
	documented, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	strange := regexp.MustCompile(`(?i)zanzibar|[0-9a-f]{8}-[0-9a-f]{4}|evt_|mem_[0-9a-f]|` + s.ws.String())
	ours := map[string]bool{}
	for name, p := range map[string]*testkit.Process{"api": api, "worker": worker, "repair": repair} {
		for family, f := range s.scrape(p) {
			if strings.HasPrefix(family, "holdfast_") {
				ours[family] = true
				if !strings.Contains(string(documented), "`"+family+"`") {
					t.Errorf("docs/metrics.md lacks %s of %s", family, name)
				}
			}
			values := map[string]map[string]bool{}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if values[l.GetName()] == nil {
						values[l.GetName()] = map[string]bool{}
					}
					values[l.GetName()][l.GetValue()] = true
					if strange.MatchString(l.GetValue()) {
						t.Errorf("%s of %s has the label %s=%q", family, name, l.GetName(), l.GetValue())
					}
				}
			}
			for label, all := range values {
				if len(all) > maxValues {
					t.Errorf("%s of %s has %d values of %s", family, name, len(all), label)
				}
			}
		}
	}
	for _, must := range []string{
		"holdfast_accept_seconds", "holdfast_event_seconds", "holdfast_group_items", "holdfast_pool_connections_in_use", "holdfast_streams_open",
		"holdfast_queue_due_tasks", "holdfast_repair_total", "holdfast_worker_slots", "holdfast_hints_published_total", "holdfast_pool_shed_total",
	} {
		if !ours[must] {
			t.Errorf("no process has %s", must)
		}
	}
	if landed := s.scrape(worker)["holdfast_event_seconds"].GetMetric()[0].GetHistogram(); landed.GetSampleSum() <= 0 {
		t.Errorf("events landed after %f s", landed.GetSampleSum())
	}
	if s.scrape(worker)["holdfast_queue_oldest_due_seconds"] != nil {
		t.Error("workers look at the queue of the whole database too")
	}
}
