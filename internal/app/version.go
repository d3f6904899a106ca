package app

import "runtime/debug"

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
