// Package anthropic extracts facts with Anthropic's messages API: one forced tool whose input is the answer.
//
// Rules it guards: one call of Extract is one attempt (the SDK's retries are off); blocks are chosen by their
// type, never by their place; nothing is read from the environment, and the SDK's own telemetry is off, because
// it can carry content; no text of the provider leaves the package. It may import model, task and the Anthropic
// SDK.
package anthropic
