package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// The defaults of a Config.
const (
	DefaultBaseURL         = "https://api.openai.com/v1"
	DefaultModel           = "gpt-4.1-mini"
	DefaultEmbeddingModel  = "text-embedding-3-small"
	DefaultTimeout         = 60 * time.Second
	DefaultMaxOutputTokens = 8192 // 4096 cut most answers of long conversations in the field
)

// Bounds of what a server may answer.
const (
	maxChatAnswer      = 4 << 20  // 8192 tokens are far below; a server that sends more is broken
	maxEmbeddingAnswer = 16 << 20 // 32 vectors of 4096 numbers with 20 digits are 3 MiB
)

// Config says which server to use. The zero value of every field but APIKey has a default.
type Config struct {
	BaseURL string
	// APIKey may be empty for servers that want none.
	APIKey model.Secret
	Model  string
	// Timeout bounds one call of Extract or Embed, repeated parameters included.
	Timeout         time.Duration
	MaxOutputTokens int
	// Dimensions asks an embedder for vectors of this length, 0 for its own.
	Dimensions int
	Proxy      model.Proxy
}

// checked returns the configuration with its defaults and the server's address.
func (c Config) checked(defaultModel string) (Config, *url.URL, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if c.Model == "" {
		c.Model = defaultModel
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxOutputTokens == 0 {
		c.MaxOutputTokens = DefaultMaxOutputTokens
	}
	base, err := model.BaseURL(c.BaseURL)
	if err != nil {
		return c, nil, fmt.Errorf("openai: %w", err)
	}
	if err := model.CheckTimeout(c.Timeout); err != nil {
		return c, nil, fmt.Errorf("openai: %w", err)
	}
	switch {
	case c.MaxOutputTokens < 256 || c.MaxOutputTokens > 65_536:
		return c, nil, fmt.Errorf("openai: the output limit must be 256 to 65,536 tokens, not %d", c.MaxOutputTokens)
	case c.Dimensions < 0 || c.Dimensions > 16_384:
		return c, nil, fmt.Errorf("openai: dimensions must be 0 to 16,384, not %d", c.Dimensions)
	case c.APIKey == "" && base.Host == officialHost:
		return c, nil, errors.New("openai: " + officialHost + " needs an API key; set it, or set the base URL of another server")
	case strings.ContainsAny(c.APIKey.Reveal(), " \r\n\t"):
		return c, nil, errors.New("openai: the API key contains white space; copy it again")
	}
	return c, base, nil
}

const officialHost = "api.openai.com"

// account is what both adapters share.
type account struct {
	config   Config
	provider string
	models   sdk.ModelService
	client   *http.Client
}

// newAccount returns the account and the options of its services. The services are built from these alone: the
// SDK's own client would read OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_CUSTOM_HEADERS and others from the
// environment.
func newAccount(config Config, base *url.URL, maxAnswer int64) (account, []option.RequestOption) {
	client := model.NewHTTPClient(maxAnswer, config.Proxy)
	options := []option.RequestOption{
		option.WithBaseURL(base.String() + "/"),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0), // the task's retry policy is the only one
	}
	if config.APIKey != "" {
		options = append(options, option.WithAPIKey(config.APIKey.Reveal()))
	}
	return account{
		config: config, provider: "openai:" + base.Host, models: sdk.NewModelService(options...), client: client,
	}, options
}

// Provider returns the adapter's name and the server's host.
func (a *account) Provider() string { return a.provider }

// Local is false: every call goes over the network.
func (a *account) Local() bool { return false }

// Close drops idle connections. The adapter stays usable.
func (a *account) Close() { a.client.CloseIdleConnections() }

// Check lists the server's models, which costs nothing and needs valid credentials.
func (a *account) Check(ctx context.Context) error {
	ctx, cancel := model.Bounded(ctx, a.config.Timeout)
	defer cancel()
	var response *http.Response
	if _, err := a.models.List(ctx, option.WithResponseInto(&response)); err != nil {
		failure := classify(ctx, err, response).err
		failure.Usage.Calls = 1
		return failure
	}
	return nil
}
