//go:build unix && !linux

package localdev

import "syscall"

// setParentDeathSignal does nothing: only Linux can tie a child's life to its parent's.
func setParentDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
