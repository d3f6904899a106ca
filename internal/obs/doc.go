// Package obs is what an operator sees of a process: its log, its metrics, and the admin server that answers
// /metrics, /healthz and /readyz on an address of its own, away from the public port.
//
// Rules it guards: logs go to standard error as one JSON line each; no metric has a label whose values grow with
// the traffic (no ids, no paths, no workspaces, no texts); nothing here holds a body, key or secret. It may import
// the domain and use case packages, whose counters it implements.
package obs
