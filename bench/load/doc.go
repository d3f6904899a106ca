// Package load makes load and measures what comes back: callers in a closed loop, arrivals at a fixed rate, and an
// HTTP client that costs next to nothing beside the server it measures.
//
// It imports nothing of Holdfast.
package load
