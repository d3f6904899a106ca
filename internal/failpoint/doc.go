// Package failpoint marks the places where a crash is interesting.
//
// Hit is an empty function in every ordinary build. Built with `-tags chaos` it reads HOLDFAST_FAILPOINT, a
// comma separated list of name=action, and does what it says the first time that name is reached, or the n-th
// time with name=action@n: `kill` ends the process with SIGKILL, `stop` freezes it with SIGSTOP, `hang` blocks
// until the process ends, `error` panics. It imports nothing of Holdfast and may be imported everywhere.
package failpoint
