package app

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// apiStop lets answers under way finish: an acceptance takes 15 s at most, and waits end at once.
const apiStop = 20 * time.Second

// newAPI builds the HTTP API over the core's stores, serving on listener.
func (c *core) newAPI(listener net.Listener) (*httpapi.Server, error) {
	c = c.shedding()
	prices := credit.DefaultPrices()
	policy, err := c.settings.snapshot()
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	accepter, err := write.NewAccepter(countedAccepts{minuteAccepts{c.db, c.minutes}, c.metrics}, c.wakeups, prices, policy)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	writer, err := write.NewWriter(countedWrites{minuteWrites{c.db, c.minutes}, c.metrics}, c.wakeups, c.embedder, prices)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	retrier, err := write.NewRetrier(c.db, c.wakeups, prices)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	canceller, err := write.NewCanceller(c.db, c.wakeups, c.wakeups)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	deps := httpapi.Deps{
		Authenticator: c.db, Accepter: accepter, Writer: writer, Retrier: retrier, Canceller: canceller,
		Log: c.log,
	}
	if err := c.addReaders(&deps); err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	if err := c.addChanges(&deps, prices); err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	if err := c.addWebhooks(&deps); err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	items, err := c.addItems(&deps, prices, policy)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	deps = httpapi.Noting(deps)
	mounts, err := c.mounts(deps)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	mem0, err := c.newMem0(deps)
	if err != nil {
		return nil, fmt.Errorf("build API: %w", err)
	}
	server, err := httpapi.New(deps, httpapi.Config{
		Listener: listener, RateLimit: c.settings.RateLimit, Shed: c.metrics.Shed, Observe: c.metrics.Request, Trace: c.trace(), Dialects: []httpapi.Dialect{items}, Guests: []httpapi.Guest{mem0}, Mounts: mounts,
	})
	if err != nil {
		return nil, err
	}
	c.metrics.WatchStreams(server.Following)
	c.metrics.WatchQueue(c.watched.Facts)
	return server, nil
}

// shedding is the core whose store refuses who would wait too long for a connection.
func (c *core) shedding() *core {
	own := *c
	own.db = c.api.Shedding()
	c.metrics.WatchShed(own.db.Shed)
	return &own
}

// addReaders fills in the use cases that read.
func (c *core) addReaders(deps *httpapi.Deps) error {
	events, err := recall.NewEvents(c.db.EventReader(c.settings.MaxAttempts), c.wakeups)
	if err != nil {
		return err
	}
	streams, err := recall.NewStreams(c.db.EventReader(c.settings.MaxAttempts), c.wakeups)
	if err != nil {
		return err
	}
	deps.Streams = streams
	memories, err := recall.NewMemories(c.db)
	if err != nil {
		return err
	}
	searcher, err := recall.NewSearcher(c.db, c.embedder)
	if err != nil {
		return err
	}
	credits, err := recall.NewCredits(c.db)
	if err != nil {
		return err
	}
	health, err := recall.NewHealth(c.watched, c.wakeups.healthy)
	if err != nil {
		return err
	}
	deps.Events, deps.Memories, deps.Searcher, deps.Credits, deps.Health = events, memories, searcher, credits, health
	return nil
}

func verdict(replayed bool, err error) string {
	switch {
	case err != nil:
		return "refused"
	case replayed:
		return "replayed"
	}
	return "accepted"
}

// refusal is the public code of a refusal; an unknown COMMIT has none yet, because the acceptance is repeated.
func refusal(err error) string {
	if errors.Is(err, fault.ErrCommitUnknown) {
		return "commit_unknown"
	}
	return string(fault.CodeOf(err))
}
