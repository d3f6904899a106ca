// Package keys is the section Keys of the console: a workspace's API keys, a new one, and the end of one. It is for
// operators, as the API for it is.
//
// Rules it guards: whoever signs in with a key has no such pages, whatever the key allows; the secret of a new key is in
// the one answer to the form that made it and nowhere else; a form that is sent twice makes one key; a key is ended by
// who has typed its name or id; the key of another workspace is not there. It belongs to the httpapi family and may
// import the domain.
package keys
