package app

import (
	"context"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const (
	directAdvice = "Set it to the server itself: migrations take a lock that a pooled session doesn't keep."
	modeAdvice   = "Set HOLDFAST_DATABASE_POOLER=transaction, and HOLDFAST_DATABASE_DIRECT_URL to the server itself."
	// protocolViolation is what PgBouncer answers to a start-up parameter that it doesn't know.
	protocolViolation = "SQLSTATE 08P01"
)

// examinePooler compares what answers at the URL with what the settings say of it.
func examinePooler(ctx context.Context, d Database) []Finding {
	transaction := d.DatabasePooler == "transaction"
	var found []Finding
	if transaction && d.DatabaseDirectURL == "" {
		found = append(found, Finding{
			"pooler", Danger, "HOLDFAST_DATABASE_POOLER is transaction and HOLDFAST_DATABASE_DIRECT_URL is not set", directAdvice,
		})
	}
	through, err := postgres.ReadPooling(ctx, d.DatabaseURL.Reveal())
	if err != nil {
		return append(found, unreadable(err))
	}
	switch {
	case !through.Pooled && transaction:
		found = append(found, Finding{
			"pooler", Warning, "HOLDFAST_DATABASE_POOLER is transaction and no pooler answers at HOLDFAST_DATABASE_URL",
			"Everything works; without the setting statements are prepared once and run faster.",
		})
	case !through.Pooled:
		return found
	case through.Shared && !transaction:
		found = append(found, Finding{
			"pooler", Danger, "one in transaction mode answers at HOLDFAST_DATABASE_URL, and HOLDFAST_DATABASE_POOLER is none", modeAdvice,
		})
	case !transaction:
		found = append(found, Finding{
			"pooler", Warning, "one answers at HOLDFAST_DATABASE_URL, and HOLDFAST_DATABASE_POOLER is none",
			"In session mode nothing is to be done. In transaction mode: " + modeAdvice,
		})
	}
	if d.DatabaseDirectURL != "" {
		found = append(found, examineDirect(ctx, d, through)...)
	}
	if len(found) == 0 {
		found = append(found, Finding{Check: "pooler", Grade: Good, Found: "it gives connections out by the transaction, as the settings say"})
	}
	return found
}

// examineDirect looks whether the direct way leads past the pooler, to the same database.
func examineDirect(ctx context.Context, d Database, through postgres.Pooling) []Finding {
	direct, err := postgres.ReadPooling(ctx, d.DatabaseDirectURL.Reveal())
	switch {
	case err != nil:
		return []Finding{unreadable(err)}
	case direct.Pooled:
		return []Finding{{"pooler", Danger, "HOLDFAST_DATABASE_DIRECT_URL leads to a pooler", directAdvice}}
	case !direct.SameAs(through):
		return []Finding{{
			"pooler", Danger, "HOLDFAST_DATABASE_URL and HOLDFAST_DATABASE_DIRECT_URL lead to different databases",
			"Correct one of them: migrations go to the second, everything else to the first.",
		}}
	}
	return nil
}

func unreadable(err error) Finding {
	f := Finding{"pooler", Danger, err.Error(), "Correct HOLDFAST_DATABASE_URL, or start what it leads to."}
	if strings.Contains(f.Found, protocolViolation) {
		f.Advice = "PgBouncer refuses parameters that it doesn't know: take those behind the `?` out of the URL, or name them in its ignore_startup_parameters."
	}
	return f
}
