// Package migrations holds the schema as numbered goose files, embedded in the binaries. A released file never changes.
// It may import nothing of this module.
package migrations

import "embed"

// FS holds every migration at its root, as goose's Provider wants them.
//
//go:embed *.sql
var FS embed.FS
