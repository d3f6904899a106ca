package main

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

type reindexCommand struct {
	app.Database
	app.Models
}

// progressEvery keeps the progress readable: a page takes some milliseconds or some seconds.
const progressEvery = time.Second

// Run rebuilds everything and shows on standard error how far it is. What was done stays done when it is stopped or
// fails.
func (c *reindexCommand) Run(s *session) error {
	bar := s.progress("memories")
	done, err := app.Reindex(s.ctx, c.Database, c.Models, func(r repair.Reindex) {
		if !r.Finished {
			bar.show(r.Done, r.Total)
		}
	})
	bar.end()
	if err != nil {
		if done.Model == "" {
			return err
		}
		return exitf(app.ExitFailed, "stopped after %d of about %d memories; the same command goes on there: %v", done.Done, done.Total, err)
	}
	return s.show(reindexOf(done), "All %d memories are searchable with %s.\n", done.Done, done.Model)
}

type reindexProgress struct {
	ID        string    `json:"id"`
	Model     string    `json:"model"`
	Done      int64     `json:"done"`
	Total     int64     `json:"total"`
	Finished  bool      `json:"finished"`
	StartedAt time.Time `json:"started_at"`
}

func reindexOf(r repair.Reindex) reindexProgress {
	return reindexProgress{r.ID.String(), r.Model, r.Done, r.Total, r.Finished, r.StartedAt.UTC()}
}
