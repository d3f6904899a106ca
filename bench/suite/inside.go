package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/bench/flame"
	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
)

const (
	profileTime = 10 * time.Second // a thousand samples of each core
	inFlight    = 64
	adminBound  = 60 * time.Second // longer than the longest profile
	mostProfile = 64 << 20         // bytes; a profile has some hundred thousand
)

// watched makes a place whose API and worker serve their profiles.
func (r *run) watched(ctx context.Context) (*place, error) {
	p, err := r.newPlace(ctx, "watched", ours.Thousand, ours.SiteConfig{Profiles: true})
	if err != nil {
		return nil, err
	}
	if err := p.site.StartAPI(ctx); err != nil {
		return nil, err
	}
	return p, p.site.StartWorker(ctx)
}

// Profile puts API and worker under load and writes what they do meanwhile into dir: profiles for `go tool pprof`,
// flame graphs and folded stacks.
func Profile(ctx context.Context, plan Plan, dir string) (err error) {
	r, err := open(ctx, plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	p, err := r.watched(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := r.rig.ForgetStatements(ctx); err != nil {
		return err
	}
	api, worker := p.site.Admins()
	taken := make(chan error, 2)
	for name, admin := range map[string]string{"api": api, "worker": worker} {
		go func() { taken <- r.profile(ctx, admin, filepath.Join(dir, name)) }()
	}
	c, err := p.site.NewCallers(ctx, p.tenants, inFlight)
	if err != nil {
		return err
	}
	defer c.Close()
	result, err := load.Closed(ctx, inFlight, 0, profileTime+time.Second, c.Finish)
	if err != nil {
		return err
	}
	r.say("%.0f tasks a second meanwhile", result.Rate())
	err = errors.Join(<-taken, <-taken)
	found, statements := r.rig.Statements(ctx, "watched")
	for _, s := range found[:min(12, len(found))] {
		r.say("%8.0f ms in %7d calls  %s", s.TotalMS, s.Calls, s.Text)
	}
	return errors.Join(err, statements)
}

func (r *run) profile(ctx context.Context, admin, base string) error {
	body, err := ask(ctx, admin, "/debug/pprof/profile?seconds="+strconv.Itoa(int(profileTime.Seconds())))
	if err != nil {
		return err
	}
	graph, err := flame.Read(bytes.NewReader(body))
	if err != nil {
		return err
	}
	var drawn, folded bytes.Buffer
	if err := errors.Join(graph.Draw(&drawn, filepath.Base(base)+" under load"), graph.Fold(&folded)); err != nil {
		return err
	}
	for ending, content := range map[string][]byte{".pb.gz": body, ".svg": drawn.Bytes(), ".folded": folded.Bytes()} {
		if err := os.WriteFile(base+ending, content, 0o600); err != nil {
			return fmt.Errorf("write profile: %w", err)
		}
	}
	r.say("%s.pb.gz, .svg and .folded are written; most time goes to", base)
	for _, cost := range graph.Top(15, func(name string) bool { return strings.Contains(name, "holdfast/internal/") }) {
		r.say("  %5.1f %%  %s", 100*cost.Within, cost.Name[strings.LastIndex(cost.Name, "/")+1:])
	}
	return nil
}

// held is what a process holds after a collection.
type held struct{ heap, goroutines int64 }

// Soak sends requests, each a task that runs to its end, and compares what API and worker hold after a fifth of them
// with what they hold at the end. More than a tenth more is an error.
func Soak(ctx context.Context, plan Plan, requests int, out io.Writer) (err error) {
	r, err := open(ctx, plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	p, err := r.watched(ctx)
	if err != nil {
		return err
	}
	c, err := p.site.NewCallers(ctx, p.tenants, inFlight)
	if err != nil {
		return err
	}
	defer c.Close()
	early := requests / 5
	var seen [2][2]held
	for i, n := range []int{early, requests - early} {
		if err := load.Fixed(ctx, inFlight, n, c.Finish); err != nil {
			return err
		}
		api, worker := p.site.Admins()
		for j, admin := range []string{api, worker} {
			if seen[i][j], err = holds(ctx, admin); err != nil {
				return err
			}
		}
		r.say("after %d requests: API %+v, worker %+v", early+i*n, seen[i][0], seen[i][1])
	}
	for j, name := range []string{"API", "worker"} {
		a, b := seen[0][j], seen[1][j]
		fmt.Fprintf(out, "| %s | heap | %d kB | %d kB | %.2f |\n| %s | goroutines | %d | %d | %.2f |\n", name, a.heap>>10, b.heap>>10,
			float64(b.heap)/float64(a.heap), name, a.goroutines, b.goroutines, float64(b.goroutines)/float64(a.goroutines))
		if b.heap*10 > a.heap*11 || b.goroutines*10 > a.goroutines*11 {
			err = errors.Join(err, fmt.Errorf("the %s holds over a tenth more after %d requests than after %d", name, requests, early))
		}
	}
	return err
}

func holds(ctx context.Context, admin string) (h held, err error) {
	heap, err := ask(ctx, admin, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return h, err
	}
	routines, err := ask(ctx, admin, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return h, err
	}
	if h.heap, err = after(heap, "# HeapAlloc = "); err != nil {
		return h, err
	}
	h.goroutines, err = after(routines, "goroutine profile: total ")
	return h, err
}

// after reads the number behind mark.
func after(text []byte, mark string) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte(mark))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if !found {
		return 0, fmt.Errorf("a profile without %q", mark)
	}
	return strconv.ParseInt(strings.TrimSpace(string(line)), 10, 64)
}

func ask(ctx context.Context, admin, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminBound)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostProfile))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("ask for %s: status %d", path, response.StatusCode))
	}
	return body, nil
}
