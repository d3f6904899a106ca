// Package stubmodel is a language model for tests and for the demo: a server on loopback that speaks OpenAI's
// chat completions, embeddings and models, and Anthropic's messages and models, and does what its script says:
// answer, stall until released, refuse, break off, answer nonsense. It counts and times every call.
//
// Without a script it answers one fact for each line of a user's message that begins with "FACT: ", superseding a
// known statement where the line says so, and hashed vectors for embeddings. It may import model and offline; it doesn't import testing, so that programs can use
// it too.
package stubmodel
