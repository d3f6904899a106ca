package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const (
	oldestPostgres = 150_000 // the oldest version that the migrations are written for
	// skewWarning and skewDanger judge this machine's clock against the database's. Deadlines are decided there, so a
	// skew only makes logs and doctor's reader disagree; half a minute means that nobody keeps the clocks.
	skewWarning = 2 * time.Second
	skewDanger  = 30 * time.Second
)

// judgedSettings are the server settings that doctor looks at.
func judgedSettings() []string {
	return []string{
		"server_version", "server_version_num", "server_encoding", "default_transaction_read_only", "fsync",
		"synchronous_commit", "full_page_writes", "jit", "log_statement", "log_min_duration_statement",
		"log_min_duration_sample", "log_transaction_sample_rate", "log_parameter_max_length",
		"log_parameter_max_length_on_error", "log_min_error_statement", "log_error_verbosity", "shared_preload_libraries",
	}
}

// examineServer judges version, encoding, clock, durability and what the server writes into its log.
func examineServer(server postgres.Server) []Finding {
	found := examineVersion(server.Settings, server.Replica)
	found = append(found, examineClock(server.Skew, server.Took))
	found = append(found, examineDurability(server.Settings)...)
	found = append(found, examineCompiling(server.Settings))
	return append(found, examineLogging(server.Settings)...)
}

// examineCompiling looks for just-in-time compilation.
func examineCompiling(settings map[string]string) Finding {
	f := Finding{Check: "postgres jit", Grade: Good, Found: settings["jit"]}
	if f.Found == "on" {
		f.Grade, f.Advice = Warning, "Set jit = off: every statement is short, and compiling one takes longer than running it."
	}
	return f
}

func examineVersion(settings map[string]string, replica bool) []Finding {
	version := Finding{Check: "postgres version", Grade: Good, Found: settings["server_version"]}
	if number(settings["server_version_num"]) < oldestPostgres {
		version.Grade, version.Advice = Danger, "Holdfast needs PostgreSQL 15 or newer: upgrade it."
	}
	found := []Finding{version}
	if encoding := settings["server_encoding"]; encoding != "UTF8" {
		found = append(found, Finding{"postgres encoding", Danger, encoding, "Make the database with ENCODING 'UTF8'; others lose text."})
	}
	if replica || settings["default_transaction_read_only"] == "on" {
		found = append(found, Finding{"postgres role", Danger, "read-only", "Point HOLDFAST_DATABASE_URL at the primary server."})
	}
	return found
}

func examineClock(skew, uncertain time.Duration) Finding {
	f := Finding{Check: "clock", Grade: Good, Found: fmt.Sprintf("%s from the database's (±%s)", skew.Round(time.Millisecond), (uncertain / 2).Round(time.Millisecond))}
	away := max(0, skew.Abs()-uncertain/2)
	switch {
	case away > skewDanger:
		f.Grade = Danger
	case away > skewWarning:
		f.Grade = Warning
	default:
		return f
	}
	f.Advice = "Keep both clocks with NTP. Deadlines are decided by the database's clock, so nothing is lost, but times in logs mislead."
	return f
}

// examineDurability looks at what makes a committed transaction survive a power cut.
func examineDurability(settings map[string]string) []Finding {
	var found []Finding
	for _, check := range []struct {
		name string
		bad  []string
		cost string
	}{
		{"fsync", []string{"off"}, "a power cut destroys the database"},
		{"full_page_writes", []string{"off"}, "a power cut can leave torn pages"},
		{"synchronous_commit", []string{"off"}, "a crash loses receipts that callers hold"},
	} {
		f := Finding{Check: "postgres " + check.name, Grade: Good, Found: settings[check.name]}
		if slices.Contains(check.bad, settings[check.name]) {
			f.Grade, f.Advice = Danger, "Set "+check.name+" = on: without it "+check.cost+"."
		}
		found = append(found, f)
	}
	return found
}

// examineLogging looks for ways in which what callers say gets into the server's log.
func examineLogging(settings map[string]string) []Finding {
	var found []Finding
	judge := func(name string, grade Grade, advice string) {
		f := Finding{Check: "postgres " + name, Grade: Good, Found: settings[name]}
		if advice != "" {
			f.Grade, f.Advice = grade, advice
		}
		found = append(found, f)
	}
	logsStatements := settings["log_statement"] == "all" || settings["log_statement"] == "mod" ||
		settings["log_min_duration_statement"] != "-1" || settings["log_min_duration_sample"] != "-1" ||
		settings["log_transaction_sample_rate"] != "0"
	parameters := settings["log_parameter_max_length"] != "0"
	grade, advice := Good, ""
	switch {
	case logsStatements && parameters:
		grade, advice = Danger, "Set log_parameter_max_length = 0: logged statements carry their parameters, which are what callers say."
	case parameters:
		grade, advice = Warning, "Set log_parameter_max_length = 0, so that switching statement logging on never logs what callers say."
	}
	judge("log_parameter_max_length", grade, advice)
	advice = ""
	if settings["log_parameter_max_length_on_error"] != "0" {
		advice = "Set log_parameter_max_length_on_error = 0: failed statements are logged with what callers say."
	}
	judge("log_parameter_max_length_on_error", Danger, advice)
	for _, name := range []string{"log_statement", "log_min_duration_statement"} {
		advice = ""
		if on := settings[name]; on == "all" || on == "mod" || name == "log_min_duration_statement" && on != "-1" {
			advice = "Statements are logged; keep log_parameter_max_length = 0 with it, and switch it off when you are done."
		}
		judge(name, Warning, advice)
	}
	advice = ""
	if level := settings["log_min_error_statement"]; level != "panic" && level != "fatal" {
		advice = "Set log_min_error_statement = panic: failed statements are logged with their text."
	}
	judge("log_min_error_statement", Warning, advice)
	advice = ""
	if settings["log_error_verbosity"] != "terse" {
		advice = "Set log_error_verbosity = terse: the DETAIL of an error can quote a row."
	}
	judge("log_error_verbosity", Warning, advice)
	for _, library := range []string{"auto_explain", "pgaudit", "pg_stat_monitor"} {
		if strings.Contains(settings["shared_preload_libraries"], library) {
			found = append(found, Finding{"postgres " + library, Warning, "loaded", "See that it logs no parameters."})
		}
	}
	return found
}

func number(text string) int {
	var n int
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return 0
	}
	return n
}
