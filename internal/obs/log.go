package obs

import (
	"fmt"
	"io"

	"github.com/rs/zerolog"
)

// NewLogger returns a logger that writes one JSON line for each event of at least level (debug, info, warn or
// error) to w, with the name of the process in each.
func NewLogger(w io.Writer, level, process string) (zerolog.Logger, error) {
	var threshold zerolog.Level
	switch level {
	case "debug":
		threshold = zerolog.DebugLevel
	case "info", "":
		threshold = zerolog.InfoLevel
	case "warn":
		threshold = zerolog.WarnLevel
	case "error":
		threshold = zerolog.ErrorLevel
	default:
		return zerolog.Nop(), fmt.Errorf("log level must be debug, info, warn or error, not %q", level)
	}
	return zerolog.New(w).Level(threshold).With().Timestamp().Str("process", process).Logger(), nil
}
