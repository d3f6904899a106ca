package app

import (
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/webhook"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// Receivers says what webhooks may be.
type Receivers struct {
	WebhookAllowHTTP     bool     `name:"webhook-allow-http" help:"Let webhooks have http:// URLs beside https://."`
	WebhookAllowNetworks []string `name:"webhook-allow-networks" placeholder:"CIDR" help:"Networks that webhooks may be in although they are not public, as 10.1.0.0/16, separated by commas."`
}

// rules are the operator's rules for URLs and addresses of webhooks.
func (r Receivers) rules() (webhook.Rules, error) {
	networks, err := webhook.ParseNetworks(r.WebhookAllowNetworks)
	return webhook.Rules{AllowHTTP: r.WebhookAllowHTTP, AllowNetworks: networks}, err
}

// receivers calls webhooks.
func (c *core) receivers() (*webhook.Client, error) {
	rules, err := c.settings.rules()
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Config{Rules: rules, Agent: "Holdfast-Webhooks/" + Version()}), nil
}

// addWebhooks fills in what webhooks are managed with.
func (c *core) addWebhooks(deps *httpapi.Deps) error {
	rules, err := c.settings.rules()
	if err != nil {
		return err
	}
	endpoints, err := write.NewEndpoints(c.db, c.db, rules)
	if err != nil {
		return err
	}
	reader, err := recall.NewEndpoints(c.db)
	if err != nil {
		return err
	}
	deps.Webhooks, deps.Replayer, deps.WebhookReader = endpoints, endpoints, reader
	return nil
}
