// Package twin is the items dialect of the HTTP API: memory of what a caller keeps under ids of its own. It has a
// document of its own and no parser, guard or problem of its own: those are httpapi's.
//
// Rules it guards: an item's id is its identity, and a retry describes the same items (API.md section 3); the account
// of a call is the user of everything that it reads and writes. It may import httpapi, the use cases and the domain.
package twin
