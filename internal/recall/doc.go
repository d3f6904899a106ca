// Package recall holds the use cases that read: events with long-polling, memories, search, credits, health.
//
// Rules it guards: everything is read within the caller's workspace (I12); an event's status is derived by the
// database's clock in one expression (API.md); an index never shows what the canonical rows don't. It may
// import the domain packages.
package recall
