package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

// Grade says how bad a finding of doctor is.
type Grade string

// The grades. Only a danger makes doctor fail.
const (
	Good    Grade = "ok"
	Warning Grade = "warning"
	Danger  Grade = "danger"
)

// Finding is one thing that doctor looked at. Advice is empty when there is nothing to do.
type Finding struct {
	Check  string `json:"check"`
	Grade  Grade  `json:"grade"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

const (
	// databaseBound is how long doctor looks at the database, natsBound how long it waits for NATS, and modelBound for a
	// provider's list of models.
	databaseBound = 30 * time.Second
	natsBound     = 5 * time.Second
	modelBound    = 15 * time.Second
	natsLook      = 50 * time.Millisecond
)

// Doctor looks at everything that the processes of these settings need and changes nothing. Each check stands for
// itself: one that can't be made is a finding, not an error.
func Doctor(ctx context.Context, s Settings) ([]Finding, error) {
	private := s.ownServer()
	database, nats, err := s.located()
	if err != nil && !errors.Is(err, errNoDatabase) {
		return nil, err
	}
	s.Database, s.NATSURL = database, nats
	var found []Finding
	if err := s.Validate(); err != nil {
		found = append(found, Finding{"settings", Danger, err.Error(), "Correct the setting; no process starts with it."})
	} else {
		found = append(found, Finding{Check: "settings", Grade: Good, Found: "they fit together"})
	}
	if s.DatabaseURL == "" {
		found = append(found, Finding{"database", Danger, "none is named", "Set HOLDFAST_DATABASE_URL, or run `holdfast up`."})
	} else {
		found = append(found, examineDatabase(ctx, s, private)...)
		found = append(found, examineKeys(ctx, s.Database, s.Encryption)...)
	}
	found = append(found, examineNATS(ctx, s)...)
	found = append(found, examineLinks(s)...)
	return append(found, examineModels(ctx, s.Models)...), nil
}

func examineDatabase(ctx context.Context, s Settings, private bool) []Finding {
	ctx, cancel := context.WithTimeout(ctx, databaseBound)
	defer cancel()
	server, err := postgres.ReadServer(ctx, s.Direct().Reveal(), judgedSettings())
	if _, ok := errors.AsType[*postgres.Unreachable](err); ok {
		return []Finding{{"database", Danger, err.Error(), "Start it, or correct HOLDFAST_DATABASE_URL. Nothing works without it."}}
	}
	if err != nil {
		return []Finding{{"database", Danger, "its settings cannot be read: " + err.Error(), "Let the user read pg_settings."}}
	}
	found := append(examineServer(server), examineMigrations(ctx, s.Database), examineRole(ctx, s.Database, private))
	return append(found, examinePooler(ctx, s.Database)...)
}

func examineMigrations(ctx context.Context, d Database) Finding {
	current, latest, err := postgres.MigrationStatus(ctx, d.Direct().Reveal())
	switch {
	case err != nil:
		return Finding{"migrations", Danger, err.Error(), "Let the user create tables in its database."}
	case current < latest:
		return Finding{"migrations", Danger, fmt.Sprintf("version %d of %d", current, latest), "Run `holdfast migrate`; API and workers refuse to start before."}
	case current > latest:
		return Finding{"migrations", Warning, fmt.Sprintf("version %d, this build knows %d", current, latest), "Update these binaries to the version that migrated."}
	}
	return Finding{Check: "migrations", Grade: Good, Found: fmt.Sprintf("version %d, the newest", current)}
}

func examineNATS(ctx context.Context, s Settings) []Finding {
	if s.NATSURL == "" {
		return []Finding{{
			"nats", Warning, "HOLDFAST_NATS_URL is not set",
			"Everything works, but tasks start at the next poll (" + s.WorkerPoll.String() + ") and not at once.",
		}}
	}
	client, err := wakeup.Connect(ctx, wakeup.Config{
		URL: s.NATSURL.Reveal(), Name: "holdfast-doctor", AckWait: s.LeaseTTL + ackMargin, Log: zerolog.Nop(),
		Link: s.link("doctor"),
	})
	if err != nil {
		return []Finding{{"nats", Danger, err.Error(), "Correct HOLDFAST_NATS_URL, or the file that it names."}}
	}
	defer func() { _ = client.Stop(context.WithoutCancel(ctx)) }()
	limited, cancel := context.WithTimeout(ctx, natsBound)
	defer cancel()
	for client.Healthy() != nil {
		select {
		case <-limited.Done():
			return []Finding{unconnected(client.Healthy())}
		case <-time.After(natsLook):
		}
	}
	found := append([]Finding{{Check: "nats", Grade: Good, Found: "connected"}}, examineCertificate(client.CertificateEnds())...)
	found = append(found, examineTopology(limited, client)...)
	for _, class := range []string{task.Interactive, task.Bulk} {
		waiting, err := client.Waiting(limited, class)
		if err != nil {
			found = append(found, Finding{
				"nats consumer " + class, Warning, err.Error(),
				"Repair makes stream and consumers, and any process that may; if it runs, JetStream is off or its user may not use it.",
			})
			continue
		}
		found = append(found, Finding{Check: "nats consumer " + class, Grade: Good, Found: fmt.Sprintf("%d hints wait", waiting)})
	}
	return found
}

// unconnected tells why there is no connection: nothing answers, or one side doesn't take the other.
func unconnected(err error) Finding {
	const away = "Start it, or correct HOLDFAST_NATS_URL. Nothing is lost meanwhile; tasks are found by polling."
	if reason, known := wakeup.Reason(err); known {
		return Finding{"nats", Danger, reason, "See docs/nats.md for certificates and users. Nothing is lost meanwhile; tasks are found by polling."}
	}
	return Finding{"nats", Danger, "it does not answer", away}
}

// certificateNotice is how long before the end of the server's certificate doctor speaks of it.
const certificateNotice = 30 * 24 * time.Hour

func examineCertificate(ends time.Time) []Finding {
	if ends.IsZero() {
		return nil
	}
	f := Finding{Check: "nats certificate", Grade: Good, Found: "valid until " + ends.UTC().Format(time.DateOnly)}
	if time.Until(ends) < certificateNotice {
		f.Grade, f.Advice = Warning, "Run `holdfast nats-setup` again and reload the server. With an expired one tasks are found by polling."
	}
	return []Finding{f}
}

// examineTopology compares stream and consumers with what these settings would make. They are never changed by a
// process, so that the operator has to.
func examineTopology(ctx context.Context, client *wakeup.Client) []Finding {
	deviations, err := client.Deviations(ctx)
	if err != nil {
		return []Finding{{"nats topology", Warning, err.Error(), "Start repair: it makes stream and consumers. If it runs, this user may not look at them."}}
	}
	found := make([]Finding, 0, len(deviations))
	for _, d := range deviations {
		f := Finding{"nats " + d.Of, Warning, fmt.Sprintf("%s is %s, not %s", d.Setting, d.Have, d.Want), "Run `" + d.Fix + "`."}
		if d.Anew {
			f.Advice += " The next look of any process makes it anew; hints that were in it are made again by repair."
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, Finding{Check: "nats topology", Grade: Good, Found: "as defined"})
	}
	return found
}

func examineModels(ctx context.Context, m Models) []Finding {
	var found []Finding
	extractor, err := m.NewExtractor()
	if err != nil {
		found = append(found, Finding{"extractor", Danger, err.Error(), "Correct its settings; workers don't start."})
	} else {
		found = append(found, examineProvider(ctx, "extractor", extractor))
	}
	embedder, err := m.embedder()
	if err != nil {
		return append(found, Finding{"embedder", Danger, err.Error(), "Correct its settings; API and workers don't start."})
	}
	return append(found, examineProvider(ctx, "embedder", embedder))
}

// provider is what an extractor and an embedder have in common.
type provider interface {
	Provider() string
	Check(ctx context.Context) error
}

func examineProvider(ctx context.Context, role string, p provider) Finding {
	ctx, cancel := context.WithTimeout(ctx, modelBound)
	defer cancel()
	err := p.Check(ctx)
	if err == nil {
		return Finding{Check: role, Grade: Good, Found: p.Provider()}
	}
	finding := Finding{role, Danger, p.Provider() + ": " + err.Error(), "Look at its address and whether it runs. Tasks wait and are retried meanwhile."}
	if failure, ok := errors.AsType[*model.Error](err); ok && failure.Class == task.ProviderRejected {
		finding.Advice = "It refuses the API key, the model or the quota: correct them with the provider. Tasks wait and are retried meanwhile."
	}
	return finding
}
