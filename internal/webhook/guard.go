package webhook

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// Rules is what the operator allows beyond https to public addresses.
type Rules struct {
	// AllowHTTP allows http:// beside https://.
	AllowHTTP bool
	// AllowNetworks are networks that may be called although they are not public, such as those of receivers on one's
	// own premises.
	AllowNetworks []netip.Prefix
}

// ParseNetworks reads networks such as 10.1.0.0/16 or fd00::/8; a bare address is a network of its own.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	networks := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
			networks = append(networks, netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no network: write it like 10.1.0.0/16", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// guard decides which addresses may be dialled.
func (r Rules) guard() *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, network := range r.AllowNetworks {
		if network.Addr().Is4() {
			v4 = append(v4, network)
		} else {
			v6 = append(v6, network)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// Check tells whether a URL may belong to a webhook: a fault WEBHOOK_URL_REFUSED with the broken rule if not. It looks
// nothing up: what a name leads to is decided each time when it is dialled.
func (r Rules) Check(text string) error {
	if rule := r.broken(text); rule != "" {
		return fault.At(fault.WebhookURLRefused, "/url", rule)
	}
	return nil
}

// broken answers the rule that a URL breaks, or nothing.
func (r Rules) broken(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "" || strings.ContainsFunc(text, control):
		return "an absolute URL"
	case u.Scheme != "https" && (u.Scheme != "http" || !r.AllowHTTP):
		return "https"
	case u.User != nil:
		return "no user information"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return "no fragment"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "a port from 1 to 65535"
		}
	}
	return r.brokenHost(u.Hostname())
}

// brokenHost answers what is wrong with a host: an address must be one that may be dialled, in its usual form; a name
// must be one that the public internet could know.
func (r Rules) brokenHost(host string) string {
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" || r.guard().SafeAddr(address) != nil {
			return "a public address"
		}
		return ""
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndex(name, ".")+1:]
	switch {
	case name == "" || len(name) > 253 || strings.ContainsFunc(name, strange):
		return "a host name or an address"
	case numeric(last): // 2130706433, 0x7f.1, 0177.0.0.1: resolvers read them as addresses
		return "an address in its usual form"
	case len(r.AllowNetworks) > 0: // the operator has names of their own; where they lead is seen when they are dialled
		return ""
	case !strings.Contains(name, "."), last == "localhost", last == "internal", last == "local":
		return "a public name"
	}
	return ""
}

// numeric tells whether the last label of a host makes it an address in one of the old forms.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// strange tells whether a character is in no ASCII host name. Names in other scripts are given in their xn-- form.
func strange(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

func control(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }
