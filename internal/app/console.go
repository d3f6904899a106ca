package app

import (
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/credits"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/events"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/memories"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/playground"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/recovery"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/settings"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/webhooks"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

// newConsole builds the console over the use cases that the API serves.
func (c *core) newConsole(deps httpapi.Deps) (httpapi.Mount, error) {
	health, err := recall.NewHealth(c.watched, c.wakeups.healthy)
	if err != nil {
		return httpapi.Mount{}, err
	}
	lives, err := recall.NewLives(c.db)
	if err != nil {
		return httpapi.Mount{}, err
	}
	bulk, err := c.newBulk()
	if err != nil {
		return httpapi.Mount{}, err
	}
	seen := events.Deps{
		Reader: deps.Events, Finder: c.db.EventReader(c.settings.MaxAttempts), Lives: lives, Balances: deps.Credits,
		Retrier: deps.Retrier, Canceller: deps.Canceller, Prices: credit.DefaultPrices(),
	}
	return console.New(console.Deps{
		Store: c.db, Service: c.watched, Health: health, Providers: operated{c}, Workspaces: c.db, Pulses: c.db, Credits: deps.Credits,
		Events: seen,
		Memories: memories.Deps{
			Reader: deps.Memories, Searcher: deps.Searcher, Entities: deps.Entities, Records: c.db,
			Finder: c.db.EventReader(c.settings.MaxAttempts), Eraser: deps.Eraser,
		},
		Account: credits.Deps{Accounts: deps.Credits, Finder: c.db.EventReader(c.settings.MaxAttempts)},
		Keys:    operated{c},
		Playground: playground.Deps{
			Accepter: deps.Accepter, Writer: deps.Writer, Searcher: deps.Searcher, Events: seen, Prices: credit.DefaultPrices(),
		},
		Recovery: recovery.Deps{Bulk: bulk, Balances: deps.Credits},
		Webhooks: webhooks.Deps{Reader: deps.WebhookReader, Changer: deps.Webhooks, Replayer: deps.Replayer},
		Settings: settings.Deps{Policies: deps.Policies, Workspaces: operated{c}, Service: settings.Service{
			MaxPending: c.settings.MaxPending, RateLimit: c.settings.RateLimit, LeaseCap: c.settings.WorkspaceLeases, Prices: credit.DefaultPrices(),
			FailedInput: c.settings.FailedInputRetention, Keys: repair.MinKeyRetention, Acts: c.settings.ActRetention,
		}},
	})
}
