// Package app builds and runs the processes of Holdfast: it reads their settings, opens the adapters, joins them to
// the use cases, and owns the order in which things start and stop.
//
// Rules it guards: only here and in cmd is the environment read; secrets have types that print as [redacted]; a
// process refuses to start on a database that isn't migrated; it stops in the order readiness, intake, drain,
// leases back, NATS, pool, each step with a bound; the first signal stops gracefully and the second at once. It may
// import everything but cmd and testkit.
package app
