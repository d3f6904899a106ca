package app

import (
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/mem0"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// newMem0 answers the dialect of the mem0 clients over the use cases that deps has.
func (c *core) newMem0(deps httpapi.Deps) (httpapi.Guest, error) {
	browser, err := recall.NewBrowser(c.db, c.db.EventReader(c.settings.MaxAttempts))
	if err != nil {
		return httpapi.Guest{}, err
	}
	definer, err := write.NewMemoryExports(c.db)
	if err != nil {
		return httpapi.Guest{}, err
	}
	reader, err := recall.NewMemoryExports(c.db)
	if err != nil {
		return httpapi.Guest{}, err
	}
	return mem0.New(mem0.Deps{
		Policies: deps.Policies, Feedbacks: deps.Feedbacks, ExportDefiner: definer, ExportReader: reader,
		Webhooks: deps.Webhooks, WebhookReader: deps.WebhookReader,
		Accepter: deps.Accepter, Writer: deps.Writer, Changer: deps.Changer, Batcher: deps.Batcher, Eraser: deps.Eraser,
		Events: deps.Events, Memories: deps.Memories, Entities: deps.Entities, Searcher: deps.Searcher, Browser: browser,
	})
}
