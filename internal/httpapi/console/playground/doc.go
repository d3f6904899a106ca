// Package playground is the section Playground of the console: a message is written as an application would, its event's
// life is watched, and what came of it is searched.
//
// Rules it guards: a message goes through the use cases of the API, with an idempotency key that this server has made, so
// that a form sent twice is one event; what was typed is shown to who typed it, in the answer to that very request, and
// never from storage. It belongs to the httpapi family and may import the use cases and the domain.
package playground
