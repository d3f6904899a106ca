package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// The defaults of a Config.
const (
	DefaultBaseURL         = "https://api.anthropic.com"
	DefaultModel           = "claude-haiku-4-5"
	DefaultTimeout         = 60 * time.Second
	DefaultMaxOutputTokens = 8192 // 4096 cut most answers of long conversations in the field
)

// maxAnswer bounds what a server may answer: 8192 tokens are far below.
const maxAnswer = 4 << 20

// Config says which server to use. The zero value of every field but APIKey has a default.
type Config struct {
	// BaseURL is the address without the API's version; a /v1 at its end is dropped.
	BaseURL string
	// APIKey may be empty for gateways that want none.
	APIKey model.Secret
	Model  string
	// Timeout bounds one call of Extract.
	Timeout         time.Duration
	MaxOutputTokens int
	Proxy           model.Proxy
}

func (c Config) checked() (Config, *url.URL, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if c.Model == "" {
		c.Model = DefaultModel
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxOutputTokens == 0 {
		c.MaxOutputTokens = DefaultMaxOutputTokens
	}
	base, err := model.BaseURL(c.BaseURL)
	if err != nil {
		return c, nil, fmt.Errorf("anthropic: %w", err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/v1")
	if err := model.CheckTimeout(c.Timeout); err != nil {
		return c, nil, fmt.Errorf("anthropic: %w", err)
	}
	switch {
	case c.MaxOutputTokens < 256 || c.MaxOutputTokens > 20_000: // above, the SDK demands streaming
		return c, nil, fmt.Errorf("anthropic: the output limit must be 256 to 20,000 tokens, not %d", c.MaxOutputTokens)
	case c.APIKey == "" && base.Host == officialHost:
		return c, nil, errors.New("anthropic: " + officialHost + " needs an API key; set it, or set the base URL of another server")
	case strings.ContainsAny(c.APIKey.Reveal(), " \r\n\t"):
		return c, nil, errors.New("anthropic: the API key contains white space; copy it again")
	}
	return c, base, nil
}

const officialHost = "api.anthropic.com"

// Client is a model.Extractor over the messages API. It is safe for concurrent use.
type Client struct {
	config   Config
	provider string
	sdk      sdk.Client
	client   *http.Client
}

// New checks config, fills in its defaults and returns a client. It opens no connection.
func New(config Config) (*Client, error) {
	config, base, err := config.checked()
	if err != nil {
		return nil, err
	}
	client := model.NewHTTPClient(maxAnswer, config.Proxy)
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithBaseURL(base.String() + "/"),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0), // the task's retry policy is the only one
	}
	if config.APIKey != "" {
		options = append(options, option.WithAPIKey(config.APIKey.Reveal()))
	}
	return &Client{config: config, provider: "anthropic:" + base.Host, sdk: sdk.NewClient(options...), client: client}, nil
}

// Provider returns the adapter's name and the server's host.
func (c *Client) Provider() string { return c.provider }

// Local is false: every call goes over the network.
func (c *Client) Local() bool { return false }

// Close drops idle connections. The client stays usable.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Check lists one model, which costs nothing and needs valid credentials.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := model.Bounded(ctx, c.config.Timeout)
	defer cancel()
	var response *http.Response
	if _, err := c.sdk.Models.List(ctx, sdk.ModelListParams{Limit: sdk.Int(1)}, option.WithResponseInto(&response)); err != nil {
		failure := classify(ctx, err, response)
		failure.Usage.Calls = 1
		return failure
	}
	return nil
}
