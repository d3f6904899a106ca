// Package webhooks is the section Webhooks of the console: the endpoints and their state, what was sent to each, and sending
// it again.
//
// Rules it guards: all of it needs the permission admin, as in the API; a webhook or delivery of another workspace is not
// there; a secret is shown once, in the answer to the rotation that made it, and no page reads one. It belongs to the
// httpapi family and may import the use cases and the domain.
package webhooks
