// Package contract holds the tests that every model adapter passes, run against the stub model. It has no code
// of its own.
package contract
