// Package seal encrypts what is stored of a command: AES-256-GCM in an envelope of two layers.
//
// A master key comes from the configuration and never reaches the database. It wraps data keys, one for each workspace
// and UTC day, which are stored wrapped and seal the payloads. Whoever destroys a master key makes everything unreadable
// that only its data keys can open: rows, write-ahead log, backups.
//
// Rules guarded here: a ciphertext opens only in its place, which is workspace, row and column; a wrapped key only as the
// key of its id and workspace; a nonce is random, or a function of key, place and text; what can't be opened answers
// ErrUnreadable and never bytes; no error says anything of a key or a text. No key is ever printed.
//
// It imports nothing of Holdfast and knows no database.
package seal
