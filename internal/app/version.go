package app

import (
	"runtime"
	"runtime/debug"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// Version returns the module's version, or the revision that the binary was built from, or "dev".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= shortRevision {
			return "dev-" + setting.Value[:shortRevision]
		}
	}
	return "dev"
}

// shortRevision is as much of a revision as git shows.
const shortRevision = 12

// Build is what a binary was built from, and what it works with.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Schema is the version of the database's schema that it needs.
	Schema int64 `json:"schema"`
}

// ThisBuild describes this binary.
func ThisBuild() Build {
	b := Build{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Schema: postgres.LatestSchema()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}
