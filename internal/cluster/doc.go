// Package cluster holds the proof that Holdfast outlives its servers: three NATS servers with TLS and nkeys and two
// PostgreSQL servers, one following the other, run as processes; NATS servers are killed in turn and PostgreSQL is failed
// over while callers write. It prints how long each end was felt.
//
// Rules it guards: I1, I2 and I7 over a failover. With synchronous replication nothing that was answered is lost; without it
// what is lost has never been, and its keys are free.
//
// It has no code of its own and is built with the tag cluster only (`make cluster`, docs/deployment.md): it is a measurement
// of half a minute with nine processes, and no part of the suite. It may import everything below cmd, and nothing imports it.
package cluster
