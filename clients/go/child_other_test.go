//go:build !linux

package holdfast_test

import "syscall"

// childAttr has nothing to set: only a clean end of the tests stops the servers here.
func childAttr() *syscall.SysProcAttr { return nil }
