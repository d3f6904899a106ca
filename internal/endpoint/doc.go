// Package endpoint is a workspace's webhook: where it is, what it is told, with which secret, and the message that
// tells it. It is pure: no clock, no network, no SQL.
//
// Rules it guards: a message holds ids, kinds and codes of the service, never a caller's text or scope, so that an
// erase leaves nothing behind in it; its id and its bytes are fixed when it is made and the same in every attempt; a
// secret prints as [redacted]. It may import the standard library, uuid, fault, memory and task.
package endpoint
