// Package check holds the tests of what lies in deploy: each file is read by the code of the program that will read it,
// and what it names is looked for. It is a module of its own, so that nobody else downloads Helm, Kubernetes and
// Prometheus. It has no code of its own, imports nothing of Holdfast, and nothing imports it.
package check
