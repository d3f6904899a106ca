package check

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// dashboard is what Grafana reads of a dashboard, as far as it is used here; anything else is refused.
type dashboard struct {
	Title, UID, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Timepicker                                 struct{}
	Annotations                                struct{ List []any }
	Links                                      []any
	Templating                                 struct{ List []variable }
	Panels                                     []panel
}

type variable struct {
	Name, Label, Type, Query, Regex string
	Refresh, Hide                   int
	IncludeAll, Multi, SkipURLSync  bool
	Options                         []any
	Current                         struct{}
}

type source struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	Datasource               *source
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              json.RawMessage
	Options                  json.RawMessage
	Targets                  []target
	Panels                   []panel
}

type target struct {
	RefID, Expr, LegendFormat, EditorMode string
	Datasource                            source
	Range                                 bool
}

func TestGrafanaDashboard(t *testing.T) {
	text := read(t, "../grafana/holdfast.json")
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	var d dashboard
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.SchemaVersion < 37 || d.UID == "" || d.Title == "" { // 37 is the first of Grafana 9.5, 38 of 10.0
		t.Errorf("schema version %d, uid %q", d.SchemaVersion, d.UID)
	}
	if len(d.Templating.List) != 1 || d.Templating.List[0].Type != "datasource" || d.Templating.List[0].Query != "prometheus" {
		t.Errorf("the data source must be the only variable: %+v", d.Templating.List)
	}
	if regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}`).MatchString(text) || strings.Contains(text, "workspace") {
		t.Error("it names a workspace or an id")
	}
	chosen := source{"prometheus", "${" + d.Templating.List[0].Name + "}"}
	known := documented(t)
	ids, places := map[int]bool{}, map[[2]int]string{}
	shown := map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID < 1 || p.Title == "" {
			t.Errorf("panel %q has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("panel %q lies over %q or outside", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Type != "timeseries" && p.Type != "stat" || p.Datasource == nil || *p.Datasource != chosen || len(p.Targets) == 0 {
			t.Errorf("panel %q: type %s, data source %v, %d targets", p.Title, p.Type, p.Datasource, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Datasource != chosen {
				t.Errorf("panel %q, target %s: %v", p.Title, target.RefID, target.Datasource)
			}
			refs[target.RefID] = true
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			checkExpr(t, p.Title, expr, known, nil)
			for _, name := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + name[1] + `\b[^)]*\)`).MatchString(expr) {
					t.Errorf("panel %q: the legend shows %s, which the expression drops", p.Title, name[1])
				}
			}
			for name := range known {
				if strings.Contains(expr, name) {
					shown[name] = true
				}
			}
		}
	}
	for _, must := range []string{ // requests, errors, durations; saturation; ends; model; credits; database
		"holdfast_http_requests_total", "holdfast_http_request_seconds_bucket", "holdfast_accept_seconds_bucket", "holdfast_queue_oldest_due_seconds",
		"holdfast_worker_busy", "holdfast_task_endings_total", "holdfast_event_seconds_bucket", "holdfast_model_calls_total",
		"holdfast_model_call_seconds_bucket", "holdfast_accepts_total", "holdfast_repair_total", "holdfast_pool_connections_in_use",
		"holdfast_pool_wait_seconds_total", "holdfast_hints_published_total", "holdfast_group_items_sum",
	} {
		if !shown[must] {
			t.Errorf("no panel shows %s", must)
		}
	}
}
