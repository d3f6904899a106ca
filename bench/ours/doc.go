// Package ours puts Holdfast under load: its store called directly, and its real API and worker over HTTP and NATS.
//
// It may import what it measures.
package ours
