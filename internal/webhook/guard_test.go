package webhook

import (
	"net/netip"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for url, rule := range map[string]string{
		"https://hooks.example.com/x?y=1":        "",
		"https://hooks.example.com:8443/x":       "",
		"https://93.184.216.34/x":                "",
		"https://[2606:2800:220:1::1]/x":         "",
		"https://xn--bcher-kva.example/x":        "",
		"http://hooks.example.com/x":             "https",
		"ftp://hooks.example.com/x":              "https",
		"//hooks.example.com/x":                  "https",
		"hooks.example.com":                      "an absolute URL",
		"https:hooks.example.com":                "an absolute URL",
		"https:///x":                             "an absolute URL",
		"https://hooks.example.com/a b":          "an absolute URL",
		"https://hooks.example.com\\@127.0.0.1/": "an absolute URL",
		"https://user:pw@hooks.example.com/":     "no user information",
		"https://user@hooks.example.com/":        "no user information",
		"https://hooks.example.com/#x":           "no fragment",
		"https://hooks.example.com/#":            "no fragment",
		"https://hooks.example.com:0/":           "a port from 1 to 65535",
		"https://127.0.0.1/":                     "a public address",
		"https://127.8.9.10:8443/":               "a public address",
		"https://10.0.0.1/":                      "a public address",
		"https://172.16.0.1/":                    "a public address",
		"https://172.31.255.255/":                "a public address",
		"https://192.168.1.1/":                   "a public address",
		"https://169.254.169.254/latest":         "a public address",
		"https://100.64.0.1/":                    "a public address",
		"https://0.0.0.0/":                       "a public address",
		"https://224.0.0.1/":                     "a public address",
		"https://255.255.255.255/":               "a public address",
		"https://[::1]/":                         "a public address",
		"https://[::]/":                          "a public address",
		"https://[fc00::1]/":                     "a public address",
		"https://[fdff::1]/":                     "a public address",
		"https://[fe80::1]/":                     "a public address",
		"https://[fe80::1%25eth0]/":              "a public address",
		"https://[ff02::1]/":                     "a public address",
		"https://[::ffff:127.0.0.1]/":            "a public address",
		"https://[::ffff:10.0.0.1]/":             "a public address",
		"https://[::ffff:7f00:1]/":               "a public address",
		"https://[64:ff9b::7f00:1]/":             "a public address",
		"https://[64:ff9b::8.8.8.8]/":            "a public address",
		"https://[64:ff9b:1::7f00:1]/":           "a public address",
		"https://[2002:7f00:1::]/":               "a public address", // 6to4 of 127.0.0.1
		"https://[2001:0:7f00:1::]/":             "a public address", // Teredo
		"https://[::127.0.0.1]/":                 "a public address", // IPv4-compatible
		"https://[::ffff:0:127.0.0.1]/":          "a public address", // IPv4-translated
		"https://[fec0::1]/":                     "a public address",
		"https://198.18.0.1/":                    "a public address",
		"https://0X7F.1/":                        "an address in its usual form",
		"https://127.0.0.0x1/":                   "an address in its usual form",
		"https://127.0.0.1%2f.example.com/":      "an absolute URL",
		"https://127。0。0。1/":                     "a host name or an address",
		"https://１２７.0.0.1/":                     "a host name or an address",
		"https://[::1]. example.com/":            "an absolute URL",
		"https://:443/":                          "a host name or an address",
		"https://hooks.example.com:65536/":       "a port from 1 to 65535",
		"https://2130706433/":                    "an address in its usual form",
		"https://0x7f000001/":                    "an address in its usual form",
		"https://0x7f.0.0.1/":                    "an address in its usual form",
		"https://0177.0.0.1/":                    "an address in its usual form",
		"https://127.1/":                         "an address in its usual form",
		"https://127.0.0.1./":                    "an address in its usual form",
		"https://localhost/":                     "a public name",
		"https://LOCALHOST./":                    "a public name",
		"https://api.localhost/":                 "a public name",
		"https://metadata.google.internal/":      "a public name",
		"https://printer.local/":                 "a public name",
		"https://intranet/":                      "a public name",
		"https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/":                     "a host name or an address",
	} {
		err := Rules{}.Check(url)
		if rule == "" {
			if err != nil {
				t.Errorf("%s is refused: %v", url, err)
			}
			continue
		}
		refused, ok := err.(*fault.Error) //nolint:errorlint // exactly that
		if !ok || refused.Code != fault.WebhookURLRefused || refused.Rule != rule || refused.Pointer != "/url" {
			t.Errorf("%s: %v, want %s (%s)", url, err, fault.WebhookURLRefused, rule)
		}
	}
	t.Run("TheOperatorAllowsNetworksAndHTTP", func(t *testing.T) {
		t.Parallel()
		rules := Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
		for url, allowed := range map[string]bool{
			"http://10.1.2.3:8080/": true, "https://[fd00::1]/": true, "http://intranet/": true,
			"http://10.2.0.1/": false, "https://127.0.0.1/": false, "https://[fc00::1]/": false, "https://[::ffff:10.1.2.3]/": false,
		} {
			if err := rules.Check(url); (err == nil) != allowed {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
}

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	got, err := ParseNetworks([]string{"10.1.2.3/16", " ", "127.0.0.1", "fd00::/8"})
	if err != nil || len(got) != 3 || got[0].String() != "10.1.0.0/16" || got[1].String() != "127.0.0.1/32" || got[2].String() != "fd00::/8" {
		t.Fatal(got, err)
	}
	for _, wrong := range []string{"everything", "10.0.0.0/33", "::ffff:10.0.0.0/100", "fe80::1%eth0"} {
		if networks, err := ParseNetworks([]string{wrong}); err == nil {
			t.Errorf("%s was taken as %v", wrong, networks)
		}
	}
}
