package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// toxicBound is how long toxiproxy may take to change a connection: it waits for data that is on its way.
const toxicBound = 10 * time.Second

// network holds one proxy for each connection of a process to a service, so that each can break alone.
type network struct {
	server *toxiproxy.ApiServer
	links  []*link
}

// link is the way of one process to one service.
type link struct {
	from, to string
	proxy    *toxiproxy.Proxy
}

func newNetwork() *network {
	return &network{server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())}
}

// connect opens the way from a process to the service at address and returns the address to use instead.
func (n *network) connect(from, to, address string) (string, error) {
	proxy := toxiproxy.NewProxy(n.server, from+"-"+to, "127.0.0.1:0", address)
	if err := proxy.Start(); err != nil {
		return "", fmt.Errorf("proxy from %s to %s: %w", from, to, err)
	}
	n.links = append(n.links, &link{from: from, to: to, proxy: proxy})
	return proxy.Listen, nil
}

func (n *network) close() {
	for _, l := range n.links {
		l.proxy.Stop()
	}
}

// ailment is what a link suffers from for a while.
type ailment struct {
	name   string
	toxics []map[string]any // none: the proxy refuses connections
}

// newAilment chooses one.
func newAilment(r *rand.Rand) ailment {
	kind, direction, size := r.IntN(5), []string{"upstream", "downstream"}[r.IntN(2)], r.IntN(1000)
	toxic := func(kind, stream string, attributes map[string]any) map[string]any {
		return map[string]any{"type": kind, "stream": stream, "name": kind + "_" + stream, "attributes": attributes}
	}
	nothing := map[string]any{"timeout": 0}
	switch kind {
	case 0:
		slow := map[string]any{"latency": 20 + size/2, "jitter": size / 4}
		return ailment{"latency", []map[string]any{toxic("latency", "upstream", slow), toxic("latency", "downstream", slow)}}
	case 1:
		return ailment{"reset", []map[string]any{toxic("reset_peer", direction, map[string]any{"timeout": size / 2})}}
	case 2:
		return ailment{"black hole", []map[string]any{toxic("timeout", "upstream", nothing), toxic("timeout", "downstream", nothing)}}
	case 3: // what one side says arrives, what the other side says doesn't
		return ailment{"half-open " + direction, []map[string]any{toxic("timeout", direction, nothing)}}
	}
	return ailment{"refused", nil}
}

// suffer gives the link the ailment, and mend takes it away; mend may be called twice.
func (l *link) suffer(a ailment) error {
	if a.toxics == nil {
		l.proxy.Stop()
		return nil
	}
	for _, toxic := range a.toxics {
		encoded, err := json.Marshal(toxic)
		if err != nil {
			return fmt.Errorf("encode toxic: %w", err)
		}
		if _, err := l.proxy.Toxics.AddToxicJson(bytes.NewReader(encoded)); err != nil {
			return fmt.Errorf("add toxic: %w", err)
		}
	}
	return nil
}

func (l *link) mend(ctx context.Context, a ailment) error {
	if a.toxics == nil {
		if err := l.proxy.Start(); err != nil {
			return fmt.Errorf("start proxy again: %w", err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toxicBound)
	defer cancel()
	for _, toxic := range a.toxics {
		if err := l.proxy.Toxics.RemoveToxic(ctx, fmt.Sprint(toxic["name"])); err != nil {
			return fmt.Errorf("remove toxic: %w", err)
		}
	}
	return nil
}
