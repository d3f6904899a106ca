// Package mem0 is the dialect of the mem0 clients over the same use cases as the native API: their paths, their
// shapes, their filters and their paging.
//
// Rules it guards: nothing is erased without a filter; what a request says and nobody here understands is refused if
// it would change the meaning; every answer has a JSON body; an event never shows what was sent. It holds shapes only:
// keys, permissions, bounds, strict reading and logging are httpapi's. It may import httpapi, its contract, the domain
// and the use cases, never Echo or SQL.
package mem0
