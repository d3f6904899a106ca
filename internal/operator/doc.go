// Package operator is what an operator sees of a Holdfast: its workspaces, their keys, who may operate it, and the log of
// what was done to them. It is pure.
//
// Rules it guards: an act says who, when, from where and about what, in ids, names and numbers; it has no member for a
// caller's text or a secret. It may import the domain packages.
package operator
