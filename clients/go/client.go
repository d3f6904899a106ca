package holdfast

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// Client calls one Holdfast service with one API key. It is safe for concurrent use and needs no closing.
type Client struct {
	// Memories reads, changes and erases what is remembered.
	Memories *Memories
	// Events tells what becomes of writes.
	Events *Events
	// Entities lists and erases users, agents, runs and apps.
	Entities *Entities
	// Credits reads the balance and its journal.
	Credits *Credits
	// Snapshots exports and imports whole workspaces.
	Snapshots *Snapshots

	base string
	// authorize sets the API key. A function, because printing a client with %+v would show the fields of a struct.
	authorize func(http.Header)
	http      *http.Client
	settings
}

// New returns a client for the service at baseURL, such as https://memory.example, that calls with an API key. Its
// errors name neither of them.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	if !visible(apiKey) {
		return nil, errors.New("holdfast: the API key must be visible ASCII characters")
	}
	c := &Client{base: base, settings: defaults(), authorize: func(h http.Header) { h.Set("Authorization", "Bearer "+apiKey) }}
	for _, opt := range opts {
		opt(&c.settings)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	own := http.Client{}
	if c.given != nil {
		own = *c.given // a copy: the caller's client keeps its rule for redirects
	}
	// A redirect would carry the key, and a write, to wherever a proxy points.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	c.Memories, c.Events, c.Entities = &Memories{c}, &Events{c}, &Entities{c}
	c.Credits, c.Snapshots = &Credits{c}, &Snapshots{c}
	return c, nil
}

// Items returns the items of one account, an end user of the caller's. An empty account is refused by the service.
func (c *Client) Items(account string) *Items { return &Items{c: c, account: account} }

// String names the service. The API key is not part of it.
func (c *Client) String() string { return "holdfast.Client(" + c.base + ")" }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

func parseBase(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil { // the error would repeat the URL, which may hold a password
		return "", errors.New("holdfast: the base URL cannot be read")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("holdfast: the base URL must be like https://memory.example")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("holdfast: the base URL must have no user, query or fragment")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func visible(text string) bool {
	for _, b := range []byte(text) {
		if b < 0x21 || b > 0x7e {
			return false
		}
	}
	return text != ""
}
