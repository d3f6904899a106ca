package postgres

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/holdfast-memory/holdfast/migrations"
)

// LatestSchema is the version of the newest migration that this build knows, by the number that its name begins with.
func LatestSchema() (latest int64) {
	entries, err := fs.ReadDir(migrations.FS, ".")
	if err != nil { // an embedded directory is always there
		return 0
	}
	for _, entry := range entries {
		number, _, _ := strings.Cut(entry.Name(), "_")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil && strings.HasSuffix(entry.Name(), ".sql") {
			latest = max(latest, version)
		}
	}
	return latest
}
