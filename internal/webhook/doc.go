// Package webhook delivers messages to webhooks over HTTP, signed by the Standard Webhooks specification.
//
// Rules it guards: the exact bytes that are sent are what is signed; a receiver's name and address are those of the
// public internet, decided on the address that is dialled and not on an earlier look-up, unless the operator allows a
// network; no redirect is followed, no proxy of the environment is used, TLS is verified; every phase of a call has a
// bound, and nothing of an answer but its status and Retry-After is kept. It may import endpoint, fault and the
// standard library; it is the only package that imports code.dny.dev/ssrf.
package webhook
