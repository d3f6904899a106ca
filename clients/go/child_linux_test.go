package holdfast_test

import "syscall"

// childAttr ends a server with the test binary, however that ends.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
