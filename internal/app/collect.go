package app

import (
	"os"
	"runtime/debug"
)

// collectAt is how much the heap may grow before it is collected, in percent of what lives. A process holds some ten
// megabytes and makes garbage fast: at Go's own 100 it spends a tenth of its time on collecting.
const collectAt = 400

// collectSeldom sets collectAt, unless GOGC says otherwise.
func collectSeldom() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(collectAt)
	}
}
