package frame

import (
	"sync"

	"golang.org/x/time/rate"
)

const (
	// failedPerMinute and failedBurst bound the failed attempts to sign in from one address: a person mistypes, and behind
	// a proxy many share one. A secret can't be guessed; the bound keeps who tries from being a load.
	failedPerMinute = 20
	failedBurst     = 20
	// requestsPerMinute and requestsBurst bound one session: ten open pages that renew themselves every second.
	requestsPerMinute = 600
	requestsBurst     = 120
	// maxPaces bounds the memory of the buckets: 10,000 of them take about 2 MB.
	maxPaces = 10_000
)

// paces are token buckets by name.
type paces struct {
	each  rate.Limit
	burst int

	mu     sync.Mutex
	bucket map[string]*rate.Limiter
	rest   *rate.Limiter // of those that no place is left for
}

func newPaces(perMinute float64, burst int) *paces {
	each := rate.Limit(perMinute / 60)
	return &paces{each: each, burst: burst, bucket: map[string]*rate.Limiter{}, rest: rate.NewLimiter(each, burst)}
}

// take takes a token of the name's bucket, false if it is empty.
func (p *paces) take(name string) bool { return p.of(name).Allow() }

// some tells whether the name's bucket has a token.
func (p *paces) some(name string) bool { return p.of(name).Tokens() >= 1 }

func (p *paces) of(name string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := p.bucket[name]; ok {
		return l
	}
	if len(p.bucket) >= maxPaces { // full buckets are like new ones
		for name, l := range p.bucket {
			if l.Tokens() >= float64(p.burst) {
				delete(p.bucket, name)
			}
		}
	}
	if len(p.bucket) >= maxPaces {
		return p.rest
	}
	l := rate.NewLimiter(p.each, p.burst)
	p.bucket[name] = l
	return l
}
