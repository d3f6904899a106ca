//go:build chaos

package failpoint

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// actions is read once: the environment of a process that is about to be killed doesn't change.
var actions = sync.OnceValue(func() *sync.Map {
	m := &sync.Map{}
	for part := range strings.SplitSeq(os.Getenv("HOLDFAST_FAILPOINT"), ",") {
		if name, action, ok := strings.Cut(strings.TrimSpace(part), "="); ok {
			m.Store(name, action)
		}
	}
	return m
})

// Hit does what HOLDFAST_FAILPOINT says for name, once; it announces itself on standard error first, so that a
// test can wait for it.
func Hit(name string) {
	action, ok := actions().LoadAndDelete(name)
	if !ok {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint %s %s\n", name, action)
	switch action {
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
