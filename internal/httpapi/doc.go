// Package httpapi is the HTTP adapter: the contract of openapi.yaml over the use cases of write and recall, and
// the one place where a fault becomes a problem document.
//
// Rules it guards: a body is read strictly and validated against the contract before anything else sees it; no
// answer and no log line quotes the caller; the workspace comes only from the key (I12), and an id of another
// workspace is answered like an unknown one; the permission of a route is the document's; every wait ends. It
// may import the use cases, the domain, Echo and the OpenAPI libraries.
package httpapi
