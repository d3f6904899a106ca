// Package arch holds the shape of the repository by test: which package may import which, which package owns
// which technology, who may read the environment, and that Postgres is never asked to carry notifications.
//
// The package has no code of its own beside this comment. Its tests read the source files in-process, whatever
// their build tags, so that a file built only with `-tags chaos` obeys the same rules. A package that the table
// in rules_test.go doesn't name fails: where something new belongs is a decision, not an accident. Nothing
// imports this package, and it imports only the standard library.
package arch
