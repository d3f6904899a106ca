package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
)

// TestUp lives through several starts over one state directory with its own PostgreSQL: each start costs a second.
func TestUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)

	first, r := m.up()
	if strings.Count(first.Stdout(), "\n") != 1 || r.PIDs.Holdfast != first.PID() || r.PIDs.Postgres == 0 {
		t.Fatalf("up --json is one line that names both processes, not %q", first.Stdout())
	}
	if m.mode("run.json") != 0o600 || m.mode("api_key") != 0o600 {
		t.Fatal("run.json and api_key are for this user only")
	}
	var kept event
	m.json(&kept, "add", "I moved to Lisbon.", "--user-id", "ada", "--wait", "30s")
	if kept.Status != "SUCCEEDED" || len(kept.Results) != 1 {
		t.Fatalf("the first memory: %+v", kept)
	}
	var credits struct{ Available, Held int64 }
	m.json(&credits, "credits", "show")
	if credits.Available != 998 || credits.Held != 0 {
		t.Fatalf("1,000 credits at the first start less 2, not %+v", credits)
	}

	code, out := m.run("", "up", "--json")
	if code != 1 || out != "" {
		t.Fatalf("a second up over the same directory ended with %d: %s", code, out)
	}

	first.Kill() // a crash: nothing is stopped, PostgreSQL ends by itself
	gone(t, r.PIDs.Postgres)

	second, again := m.up()
	if again.Key != r.Key || again.DatabaseURL != r.DatabaseURL || again.NATSURL != r.NATSURL {
		t.Fatal("a start after a crash has the same key, and its servers the same addresses")
	}
	var seen event
	m.json(&seen, "event", "get", kept.ID)
	if seen.Status != "SUCCEEDED" || len(seen.Results) != 1 {
		t.Fatalf("the event after a crash: %+v", seen)
	}
	m.json(&credits, "credits", "show")
	if credits.Available != 998 {
		t.Fatalf("a later start grants nothing: %+v", credits)
	}

	stop(t, second)
	gone(t, second.PID())
	gone(t, again.PIDs.Postgres)
	if !m.missing("run.json") {
		t.Fatal("run.json is there while up runs, and no longer")
	}
	if strings.Count(second.Stdout(), "\n") != 1 {
		t.Fatalf("nothing but one line on standard output: %q", second.Stdout())
	}
}

// TestUpStoppedEarly breaks off starts at several points: each is a clean stop that reports nothing.
func TestUpStoppedEarly(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond, 1200 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			p := m.start("holdfast", "up", "--json")
			p.WaitForOutput(`"starting"`, readyTime)
			select { // the point of the start at which the signal comes is what is varied
			case <-p.Exited():
			case <-time.After(pause):
			}
			p.Signal(syscall.SIGTERM)
			if code := p.Wait(stopTime); code != 0 || strings.Contains(p.Stderr(), "holdfast:") {
				t.Fatalf("it ended with %d: %s", code, p.Stderr())
			}
			if !m.missing("run.json") {
				t.Fatal("run.json is left")
			}
		})
	}
}

func TestUpOverOtherServers(t *testing.T) {
	t.Parallel()

	t.Run("CurlCommandsWorkAsPrinted", func(t *testing.T) {
		t.Parallel()
		m := sharedMachine(t)
		p := m.start("holdfast", "up")
		p.WaitForOutput("the data stays.", readyTime)
		var lines []string
		for line := range strings.Lines(p.Stdout()) {
			if strings.HasPrefix(line, "curl ") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 3 {
			t.Fatalf("up prints three curl commands, not %d:\n%s", len(lines), p.Stdout())
		}
		var accepted receipt
		if err := json.Unmarshal([]byte(shell(t, lines[0])), &accepted); err != nil || accepted.EventID == "" {
			t.Fatalf("the first is no receipt: %v", err)
		}
		if code, out := m.run("", "event", "wait", accepted.EventID); code != 0 {
			t.Fatalf("event wait ended with %d: %s", code, out)
		}
		if out := shell(t, lines[1]); !strings.Contains(out, accepted.EventID) || !strings.Contains(out, "SUCCEEDED") {
			t.Fatalf("the second doesn't tell of the event: %s", out)
		}
		if out := shell(t, lines[2]); !strings.Contains(out, "Lisbon") {
			t.Fatalf("the third doesn't find the memory: %s", out)
		}
		stop(t, p)
	})

	t.Run("MetricsAreOnTheAdminPortOnly", func(t *testing.T) {
		t.Parallel()
		m := sharedMachine(t)
		p, r := m.up()
		m.json(&event{}, "add", "I like marzipan.", "--user-id", "zebulon", "--wait", "30s")
		there, err := app.ReadRunning(m.state)
		if err != nil || there == nil {
			t.Fatalf("run.json: %v", err)
		}
		if status, body := fetch(t, there.Admin+"/readyz"); status != 200 {
			t.Fatalf("readyz: %d %s", status, body)
		}
		if status, body := fetch(t, there.Admin+"/healthz"); status != 200 {
			t.Fatalf("healthz: %d %s", status, body)
		}
		_, metrics := fetch(t, there.Admin+"/metrics")
		for _, want := range []string{
			`holdfast_accepts_total{code="",kind="memory_infer",result="accepted"} 1`,
			`holdfast_task_endings_total{class="",ending="succeeded"} 1`, `holdfast_queue_readable 1`,
			`holdfast_http_requests_total{method="POST",route="/v1/memories",status="202"} 1`,
			`holdfast_claims_total`, `holdfast_hints_published_total 1`, `holdfast_worker_busy 0`,
		} {
			if !strings.Contains(metrics, want) {
				t.Errorf("%s is missing", want)
			}
		}
		for _, secret := range []string{r.Key, "marzipan", "zebulon", "ws_"} {
			if strings.Contains(metrics, secret) {
				t.Errorf("the metrics hold %q", secret)
			}
		}
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if status, _ := fetch(t, r.API+path); status != 404 {
				t.Errorf("%s on the public port answers %d", path, status)
			}
		}
		stop(t, p)
	})

	t.Run("WorkersAreProcessesOfTheirOwn", func(t *testing.T) {
		t.Parallel()
		m := sharedMachine(t)
		up, _ := m.up("--workers", "0")
		code, out := m.run("", "add", "I like tea.", "--user-id", "ada", "--wait", "500ms", "--json")
		var waiting event
		if err := json.Unmarshal([]byte(out), &waiting); err != nil || code != exitPending || waiting.Status != "PENDING" {
			t.Fatalf("without a worker: %d %s", code, out)
		}
		worker := m.start("worker")
		m.json(&waiting, "event", "wait", waiting.ID)
		if waiting.Status != "SUCCEEDED" {
			t.Fatalf("with a worker: %+v", waiting)
		}
		stop(t, worker)
		stop(t, up)
	})
}

// TestBinaries runs the three programs against servers that are there.
func TestBinaries(t *testing.T) {
	t.Parallel()

	t.Run("RefuseADatabaseThatIsNotMigrated", func(t *testing.T) {
		t.Parallel()
		m := sharedMachine(t)
		dropSchema(t, m.database)
		for _, program := range []string{"api", "worker", "repair"} {
			p := m.start(program)
			if code := p.Wait(stopTime); code != 1 || !strings.Contains(p.Stderr(), "holdfast migrate") {
				t.Errorf("%s ended with %d: %s", program, code, p.Stderr())
			}
		}
		var applied struct{ Applied []int64 }
		m.json(&applied, "migrate")
		if len(applied.Applied) == 0 {
			t.Fatal("migrate applied nothing")
		}
		m.json(&applied, "migrate")
		if len(applied.Applied) != 0 {
			t.Fatalf("a second migrate applied %v", applied.Applied)
		}
	})

	t.Run("WorkTogether", func(t *testing.T) {
		t.Parallel()
		m := sharedMachine(t)
		api, worker, repair := m.start("api"), m.start("worker"), m.start("repair", "--every", "1s")
		api.WaitForOutput(`"ready"`, readyTime)
		m.json(&workspace{}, "workspace", "create", "team")
		var key struct{ Key string }
		m.json(&key, "key", "create", "--workspace", "team")
		m.json(&struct{}{}, "credits", "grant", "--workspace", "team", "--reference", "first", "10")
		m.env = append(m.env, "HOLDFAST_API=http://"+addressOf(t, api.Stderr(), "API listens"), "HOLDFAST_API_KEY="+key.Key)
		var e event
		m.json(&e, "add", "I like tea.", "--user-id", "ada", "--wait", "30s")
		if e.Status != "SUCCEEDED" {
			t.Fatalf("the event: %+v", e)
		}
		stop(t, api)
		stop(t, worker)
		stop(t, repair)

		once := m.start("repair", "--once", "--json")
		var report struct {
			Results []struct{ Pass string }
			Drift   bool
		}
		if code := once.Wait(stopTime); code != 0 {
			t.Fatalf("repair --once ended with %d: %s", code, once.Stderr())
		}
		if err := json.Unmarshal([]byte(once.Stdout()), &report); err != nil || report.Drift || len(report.Results) < 8 {
			t.Fatalf("repair --once: %v %+v", err, report)
		}
		spoilBalance(t, m.database)
		drifted := m.start("repair", "--once")
		if code := drifted.Wait(stopTime); code != 1 || !strings.Contains(drifted.Stdout(), "drift: balance") {
			t.Fatalf("repair --once over spoilt books ended with %d: %s", code, drifted.Stdout())
		}
	})
}

// addressOf reads the address that a process logged.
func addressOf(t *testing.T, log, what string) string {
	t.Helper()
	for line := range strings.Lines(log) {
		var entry struct{ Address, Message string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == what {
			return entry.Address
		}
	}
	t.Fatalf("nothing says %q:\n%s", what, log)
	return ""
}

func TestSignals(t *testing.T) {
	t.Parallel()

	t.Run("SecondOneIsImmediate", func(t *testing.T) {
		t.Parallel()
		m := sharedMachine(t)
		api := m.start("api")
		api.WaitForOutput(`"ready"`, readyTime)
		// A request whose body never comes keeps a graceful stop waiting.
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addressOf(t, api.Stderr(), "API listens"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		key := m.someKey()
		if _, err := fmt.Fprintf(conn, "POST /v1/memories HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", key); err != nil {
			t.Fatal(err)
		}
		// The server asks for the body when it begins to read it: from here on the request is under way.
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("got %q, %v", line, err)
		}
		api.Signal(syscall.SIGTERM)
		api.WaitForOutput(`"stopping"`, stopTime)
		api.Signal(syscall.SIGTERM)
		if code := api.Wait(5 * time.Second); code != 128+int(syscall.SIGTERM) {
			t.Fatalf("it ended with %d", code)
		}
	})
}

// someKey makes a workspace with a key.
func (m *machine) someKey() string {
	m.t.Helper()
	m.json(&workspace{}, "workspace", "create", "signals")
	var key struct{ Key string }
	m.json(&key, "key", "create", "--workspace", "signals")
	return key.Key
}
