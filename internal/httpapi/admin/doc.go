// Package admin is the HTTP API of operators: workspaces, their limits, credits, keys and ends, and the log of acts. It is
// a mount of the API's server, below /admin/v1, with tokens of its own.
//
// Rules it guards: an API key opens nothing here and an operator's token nothing elsewhere; every call that changes
// something may be repeated and then changes nothing more; each is recorded under its operator's name in the transaction
// that does it. It belongs to the httpapi family and may import use cases and the domain.
package admin
