// Package openai extracts facts and makes embeddings with any server that speaks OpenAI's chat completions and
// embeddings: OpenAI, Azure, Ollama, vLLM, LM Studio, Groq and others.
//
// Rules it guards: one call of Extract is one attempt (the SDK's retries are off), apart from parameters that
// the server doesn't know, which are left out at once and remembered; nothing is read from the environment; no
// text of the provider leaves the package. It may import model, task and the OpenAI SDK.
package openai
