package app

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/anthropic"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/model/openai"
)

// snapshot is how commands that are accepted now are to be read; it is kept with each of them.
func (m Models) snapshot() ([]byte, error) {
	policy := model.Policy{Prompt: model.PromptVersion, Extractor: cmp.Or(m.Extractor, "offline")}
	switch m.Extractor {
	case "openai":
		policy.Model = cmp.Or(m.OpenAIModel, openai.DefaultModel)
	case "anthropic":
		policy.Model = cmp.Or(m.AnthropicModel, anthropic.DefaultModel)
	}
	return policy.Encode()
}

// NewExtractor builds the extractor that the settings name. It opens no connection.
func (m Models) NewExtractor() (model.Extractor, error) {
	switch m.Extractor {
	case "openai":
		return openai.New(m.openAI(m.OpenAIModel))
	case "anthropic":
		return anthropic.New(anthropic.Config{
			BaseURL: m.AnthropicBaseURL, APIKey: m.AnthropicAPIKey, Model: m.AnthropicModel, Timeout: m.ModelTimeout,
			Proxy: http.ProxyFromEnvironment,
		})
	case "offline", "":
		return offline.New(), nil
	}
	return nil, fmt.Errorf("extractor must be offline, openai or anthropic, not %q", m.Extractor)
}

func (m Models) embedder() (model.Embedder, error) {
	switch m.Embedder {
	case "openai":
		return openai.NewEmbedder(m.openAI(m.OpenAIEmbeddingModel))
	case "offline", "":
		return offline.NewEmbedder(), nil
	}
	return nil, fmt.Errorf("embedder must be offline or openai, not %q", m.Embedder)
}

func (m Models) openAI(name string) openai.Config {
	return openai.Config{
		BaseURL: m.OpenAIBaseURL, APIKey: m.OpenAIAPIKey, Model: name, Timeout: m.ModelTimeout,
		Proxy: http.ProxyFromEnvironment,
	}
}
