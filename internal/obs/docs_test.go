package obs

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// everything is a registry with every metric that a process can have, each told something once.
func everything() *Metrics {
	m := NewMetrics("v1")
	m.Request("/v1/events/:id", "GET", 200, time.Millisecond)
	m.Accept("memory_infer", "refused", "INSUFFICIENT_CREDITS", time.Millisecond)
	m.Shed("key_rate")
	m.Group("accept", 3, time.Millisecond)
	o := m.Worker(16)
	o.Claimed(worker.ByHint)
	o.Ended(worker.Succeeded, "", time.Second)
	o.Landed(task.Infer, time.Second)
	o.Called("offline", "", time.Millisecond, model.Usage{TokensIn: 1})
	m.WatchHints(func() Hints { return Hints{} })
	m.WatchQueue(func(context.Context) (recall.Facts, error) { return recall.Facts{}, nil })
	m.WatchQueue(nil) // `holdfast up` has an API and repair in one process
	m.WatchRepair(func() map[string]repair.Result { return map[string]repair.Result{"books": {}} })
	m.WatchShed(func() uint64 { return 0 })
	m.WatchPool("main", func() Pool { return Pool{} })
	m.WatchPool("api", func() Pool { return Pool{} })
	m.WatchStreams(func() int { return 0 })
	m.WatchSpans(func() Spans { return Spans{} })
	return m
}

// shape is what a document must say of a metric.
type shape struct{ kind, labels string }

func shapesOf(t *testing.T, m *Metrics) map[string]shape {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[dto.MetricType]string{dto.MetricType_COUNTER: "counter", dto.MetricType_GAUGE: "gauge", dto.MetricType_HISTOGRAM: "histogram"}
	out := map[string]shape{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), namespace+"_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		out[f.GetName()] = shape{kinds[f.GetType()], strings.Join(labels, " ")}
	}
	return out
}

// TestDocument holds docs/metrics.md and the registry together.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m := everything()

	t.Run("NamesTypesAndLabelsAreThoseOfTheRegistry", func(t *testing.T) {
		t.Parallel()
		documented := map[string]shape{}
		for _, row := range regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
			if _, twice := documented[row[1]]; twice {
				t.Errorf("%s is documented twice", row[1])
			}
			if strings.TrimSpace(row[4]) == "" || strings.TrimSpace(row[5]) == "" {
				t.Errorf("%s lacks its unit or its meaning", row[1])
			}
			labels := strings.Fields(strings.NewReplacer("`", "", ",", " ").Replace(row[3]))
			slices.Sort(labels)
			documented[row[1]] = shape{row[2], strings.Join(labels, " ")}
		}
		real := shapesOf(t, m)
		for name, want := range real {
			if documented[name] != want {
				t.Errorf("%s is %+v, documented as %+v", name, want, documented[name])
			}
		}
		for name := range documented {
			if _, there := real[name]; !there {
				t.Errorf("%s is documented, and no such metric exists", name)
			}
		}
	})

	t.Run("NothingOfTheRegistryWasForgottenHere", func(t *testing.T) {
		t.Parallel()
		described := make(chan *prometheus.Desc, 1_000)
		m.registry.Describe(described)
		close(described)
		all := map[string]bool{}
		for d := range described {
			if name := regexp.MustCompile(`fqName: "(holdfast_[a-z_]+)"`).FindStringSubmatch(d.String()); name != nil {
				all[name[1]] = true
			}
		}
		if got := shapesOf(t, m); len(got) != len(all) {
			t.Errorf("%d of %d metrics were told something: %v", len(got), len(all), slices.Sorted(maps.Keys(all)))
		}
	})

	t.Run("NamesFollowTheConventions", func(t *testing.T) {
		t.Parallel()
		for name, s := range shapesOf(t, m) {
			if (s.kind == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s", name, s.kind)
			}
			if regexp.MustCompile(`(?i)_(ms|millis|minutes|kb|mb|count|sum|bucket)(_|$)`).MatchString(name) {
				t.Errorf("%s is not in base units, or reads like a part of a histogram", name)
			}
		}
	})
}
