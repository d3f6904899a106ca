// Package write holds the use cases that change something on a caller's behalf: accept a command, write at
// once, retry, cancel. One use case a file, with the small interfaces that it needs.
//
// Rules it guards: a key is one command (I1); an answer is given only after its rows are committed, a refusal
// leaves nothing behind (I2); the hint is published after the commit and its loss is only counted. It may
// import the domain packages.
package write
