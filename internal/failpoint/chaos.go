//go:build chaos

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// point is what happens at one name: the action, at the visit that left counts down to.
type point struct {
	action string
	left   atomic.Int64
}

// points is read once: the environment of a process that is about to be killed doesn't change.
var points = sync.OnceValue(func() map[string]*point {
	m := map[string]*point{}
	for part := range strings.SplitSeq(os.Getenv("HOLDFAST_FAILPOINT"), ",") {
		name, action, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			continue
		}
		p := &point{action: action}
		p.left.Store(1)
		if act, visit, counted := strings.Cut(action, "@"); counted {
			n, err := strconv.ParseInt(visit, 10, 64)
			if err != nil || n < 1 {
				panic("failpoint " + part)
			}
			p.action = act
			p.left.Store(n)
		}
		m[name] = p
	}
	return m
})

// Hit does what HOLDFAST_FAILPOINT says for name, once; it announces itself on standard error first, so that a
// test can wait for it.
func Hit(name string) {
	p := points()[name]
	if p == nil || p.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint %s %s\n", name, p.action)
	switch p.action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "hang":
		select {}
	default:
		panic("failpoint " + name)
	}
}
