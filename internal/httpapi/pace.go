package httpapi

import (
	"container/list"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// paceWindow is what a rate is counted in.
	paceWindow = time.Minute
	// burstShare is the part of a minute's requests that may come at once: six seconds' worth lets a page load or a
	// batch job begin at full speed, and a workspace that was silent can't take the service by surprise.
	burstShare = 10
	// maxBuckets bounds the memory of the buckets: 100,000 of them take about 20 MB.
	maxBuckets = 100_000
	// sweepStep is how many buckets that nobody uses are looked at for each request, so that more go than come.
	sweepStep = 2
)

// pace is what a caller has left of its rate limit: of the tighter of its two buckets, that of its workspace and that
// of its key.
type pace struct {
	policy string        // "workspace" or "key"
	limit  int           // how many requests a minute the bucket is refilled with, 0 for no limit
	left   int           // how many requests may come at once now
	full   time.Duration // when the bucket is full again if nothing comes
	wait   time.Duration // when the next request is taken; zero if this one was
}

// bucket is the tokens of one workspace or key.
type bucket struct {
	name  string
	limit *rate.Limiter
}

// paces are the token buckets of one process. Each workspace and each key with a limit has one of its own, so that
// none has an influence on another's pace. A bucket is forgotten when it is full: one that is made anew is the same.
type paces struct {
	standard int // requests a minute of a workspace without a limit of its own; 0 is no limit
	most     int

	mu      sync.Mutex
	buckets map[string]*list.Element
	seen    *list.List // the same buckets, the one looked at last in front
}

func newPaces(standard int) *paces {
	return &paces{standard: standard, most: maxBuckets, buckets: map[string]*list.Element{}, seen: list.New()}
}

// take takes one token of each of the caller's buckets, or none if one of them is empty.
func (p *paces) take(caller access.Caller, now time.Time) pace {
	limit := caller.Workspace.RateLimit
	if limit == 0 {
		limit = p.standard
	}
	if limit == 0 && caller.RateLimit == 0 {
		return pace{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	var ours []*rate.Limiter
	var names []string
	if limit > 0 {
		ours, names = append(ours, p.find("w"+caller.Workspace.ID.String(), limit, now)), append(names, "workspace")
	}
	if caller.RateLimit > 0 {
		ours, names = append(ours, p.find("k"+caller.KeyID, caller.RateLimit, now)), append(names, "key")
	}
	empty := false
	for _, b := range ours {
		empty = empty || b.TokensAt(now) < 1
	}
	var tighter pace
	for i, b := range ours {
		if !empty {
			b.AllowN(now, 1)
		}
		if now := paceOf(names[i], b, now); i == 0 || now.tighter(tighter) {
			tighter = now
		}
	}
	if !empty {
		tighter.wait = 0
	} else {
		tighter.wait = max(tighter.wait, time.Nanosecond) // what is missing may be less than a clock can tell
	}
	return tighter
}

// tighter tells whether less may come of p than of q: who has to wait longer, then who has less left.
func (p pace) tighter(q pace) bool {
	if p.wait != q.wait {
		return p.wait > q.wait
	}
	return p.left < q.left
}

func paceOf(name string, b *rate.Limiter, now time.Time) pace {
	tokens, each := b.TokensAt(now), float64(b.Limit())
	after := func(missing float64) time.Duration {
		return time.Duration(max(0, missing) / each * float64(time.Second))
	}
	return pace{
		policy: name, limit: int(math.Round(each * paceWindow.Seconds())), left: max(0, int(tokens)),
		full: after(float64(b.Burst()) - tokens), wait: after(1 - tokens),
	}
}

// find returns the bucket of that name with the limit that holds now. When all places are taken by buckets that are
// in use, one that is not kept is returned: the bound is on memory, and must not become one on somebody's pace.
func (p *paces) find(name string, limit int, now time.Time) *rate.Limiter {
	each, burst := rate.Limit(float64(limit)/paceWindow.Seconds()), max(1, limit/burstShare)
	if at, known := p.buckets[name]; known {
		p.seen.MoveToFront(at)
		b := at.Value.(*bucket).limit
		if b.Limit() != each {
			b.SetLimitAt(now, each)
			b.SetBurstAt(now, burst)
		}
		return b
	}
	b := &bucket{name, rate.NewLimiter(each, burst)}
	if len(p.buckets) < p.most {
		p.buckets[name] = p.seen.PushFront(b)
	}
	return b.limit
}

// sweep looks at a few of the buckets that nobody has looked at for longest and forgets those that are full.
func (p *paces) sweep(now time.Time) {
	for range min(sweepStep, p.seen.Len()) {
		last := p.seen.Back()
		b := last.Value.(*bucket)
		if b.limit.TokensAt(now) < float64(b.limit.Burst()) {
			p.seen.MoveToFront(last)
			continue
		}
		p.seen.Remove(last)
		delete(p.buckets, b.name)
	}
}

// admit lets the caller's request through at its pace, and tells it in the answer's header what is left. Fault
// RATE_LIMITED.
func (s *Server) admit(header http.Header, this *call) error {
	left := s.paces.take(this.caller, time.Now())
	if left.limit == 0 {
		return nil
	}
	header.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=%d`, left.policy, left.limit, int(paceWindow.Seconds())))
	header.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%s`, left.policy, left.left, seconds(left.full)))
	if left.wait == 0 {
		return nil
	}
	if this.refuse != nil { // clients of other protocols know the older names
		header.Set("X-RateLimit-Limit", strconv.Itoa(left.limit))
		header.Set("X-RateLimit-Remaining", strconv.Itoa(left.left))
		header.Set("X-RateLimit-Reset", seconds(left.full))
	}
	refusal := fault.New(fault.RateLimited)
	refusal.RetryAfter = left.wait
	s.shed(left.policy + "_rate")
	return refusal
}

// shed tells who counts that a request was refused to keep the load down.
func (s *Server) shed(why string) {
	if s.config.Shed != nil {
		s.config.Shed(why)
	}
}
