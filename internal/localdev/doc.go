// Package localdev runs the two servers that `holdfast up`, the demo and the tests need on one machine: a private
// PostgreSQL started from the installed binaries, and a NATS server with JetStream inside this process.
//
// Rules it guards: both listen on 127.0.0.1 only; PostgreSQL never runs as root, has a random password and no Unix
// socket, writes no row text to its log, and ends when the process that started it is killed; a state directory has one
// user at a time. It never connects to a server that it did not start.
//
// It may import nothing of this module.
package localdev
