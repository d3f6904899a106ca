package webhook

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
)

func loopback() Rules {
	return Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

func parcel(t *testing.T, url string) endpoint.Parcel {
	t.Helper()
	secret, err := endpoint.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	return endpoint.Parcel{
		WebhookID: uuid.New(), URL: url, Message: uuid.New(), Secrets: []endpoint.Secret{secret}, Active: true,
		Body: []byte(`{"type":"event.succeeded", "data": {"odd":  "spacing"}}`),
	}
}

func TestDeliver(t *testing.T) {
	t.Parallel()

	t.Run("TheTimeIsTheParcelsAndNotThisProcesss", func(t *testing.T) {
		t.Parallel()
		p := parcel(t, "")
		p.At = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		hook, err := standardwebhooks.NewWebhook(p.Secrets[0].Reveal())
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if at := r.Header.Get("webhook-timestamp"); at != strconv.FormatInt(p.At.Unix(), 10) {
				t.Errorf("the attempt is of %s", at)
			}
			if err := hook.VerifyIgnoringTimestamp(body, r.Header); err != nil {
				t.Error(err)
			}
		}))
		defer server.Close()
		p.URL = server.URL
		if receipt := New(Config{Rules: loopback()}).Deliver(t.Context(), p); receipt.Error != "" || !receipt.At.Equal(p.At) {
			t.Fatalf("%+v", receipt)
		}
	})

	t.Run("TheLibraryOfTheSpecificationVerifiesEverySecret", func(t *testing.T) {
		t.Parallel()
		p := parcel(t, "")
		old := parcel(t, "").Secrets[0]
		p.Secrets = append(p.Secrets, old)
		var seen atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for i, secret := range append(p.Secrets, endpoint.Secret{}) {
				hook, err := standardwebhooks.NewWebhook(secret.Reveal())
				if err != nil {
					t.Error(err)
					return
				}
				if err := hook.Verify(body, r.Header); (err == nil) != (i < 2) {
					t.Errorf("secret %d: %v", i, err)
				}
			}
			if string(body) != string(p.Body) || r.Header.Get("webhook-id") != endpoint.MessageID(p.Message) {
				t.Errorf("body %s, id %s", body, r.Header.Get("webhook-id"))
			}
			seen.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}))
		defer server.Close()
		p.URL = server.URL
		receipt := New(Config{Rules: loopback()}).Deliver(t.Context(), p)
		if receipt.Error != "" || receipt.Status != http.StatusNoContent || seen.Load() != 1 {
			t.Fatalf("%+v after %d calls", receipt, seen.Load())
		}
	})

	t.Run("EveryOtherAnswerIsAFailure", func(t *testing.T) {
		t.Parallel()
		for status, want := range map[int]endpoint.Error{
			200: "", 202: "", 299: "", 300: endpoint.Redirected, 304: endpoint.Redirected, 400: endpoint.Refused,
			410: endpoint.Refused, 429: endpoint.Refused, 500: endpoint.Refused, 503: endpoint.Refused,
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
			}))
			receipt := New(Config{Rules: loopback()}).Deliver(t.Context(), parcel(t, server.URL))
			server.Close()
			waits := status == 429 || status == 503
			if receipt.Status != status || receipt.Error != want || receipt.Gone() != (status == 410) || (receipt.RetryAfter == 7*time.Second) != waits {
				t.Errorf("%d: %+v", status, receipt)
			}
		}
	})

	t.Run("NothingIsReadWithoutEnd", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/head" {
				w.Header().Set("X-Long", strings.Repeat("x", 2*maxHead))
				return
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}))
		defer server.Close()
		client := New(Config{Rules: loopback(), Timeout: 30 * time.Second})
		began := time.Now()
		if receipt := client.Deliver(t.Context(), parcel(t, server.URL)); receipt.Error != "" {
			t.Errorf("an endless answer: %+v", receipt)
		}
		if receipt := client.Deliver(t.Context(), parcel(t, server.URL+"/head")); receipt.Error != endpoint.BadAnswer {
			t.Errorf("a large head: %+v", receipt)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})

	t.Run("ASilentReceiverTimesOut", func(t *testing.T) {
		t.Parallel()
		quiet := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-quiet }))
		defer server.Close()
		defer close(quiet)
		receipt := New(Config{Rules: loopback(), Timeout: 200 * time.Millisecond}).Deliver(t.Context(), parcel(t, server.URL))
		if receipt.Error != endpoint.TimedOut || receipt.Status != 0 {
			t.Fatalf("%+v", receipt)
		}
	})

	t.Run("ACertificateOfNobodyIsRefused", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
		server.Config.ErrorLog = nil
		server.StartTLS()
		defer server.Close()
		receipt := New(Config{Rules: loopback()}).Deliver(t.Context(), parcel(t, server.URL))
		if receipt.Error != endpoint.TLSFailed {
			t.Fatalf("%+v", receipt)
		}
	})

	t.Run("TheProxyOfTheEnvironmentIsNotUsed", func(t *testing.T) {
		t.Parallel()
		transport, ok := New(Config{}).http.Transport.(*http.Transport)
		if !ok || transport.Proxy != nil {
			t.Fatal("a proxy would be asked, and it would dial what the guard never sees")
		}
	})
}

func TestGuard(t *testing.T) {
	t.Parallel()

	t.Run("ANameThatLeadsToAnAddressOfOursIsRefused", func(t *testing.T) {
		t.Parallel()
		for _, address := range []string{
			"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
			"::1", "fc00::1", "fe80::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "ff02::1",
		} {
			names := newNames(t, strings.Contains(address, ":"), func() string { return address })
			receipt := New(Config{Resolver: names.resolver(), Timeout: 30 * time.Second}).Deliver(t.Context(), parcel(t, "https://hooks.example.com/"))
			if receipt.Error != endpoint.AddressRefused {
				t.Errorf("%s: %+v", address, receipt)
			}
		}
	})

	t.Run("ANameThatMovesIsJudgedWhereItIsDialled", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the private receiver was called") }))
		defer server.Close()
		_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
		var looked atomic.Int32
		names := newNames(t, false, func() string { // public for whoever looks first, ours for whoever dials
			if looked.Add(1) == 1 {
				return "93.184.216.34"
			}
			return "127.0.0.1"
		})
		first, err := names.resolver().LookupNetIP(t.Context(), "ip4", "hooks.example.com.")
		if err != nil || len(first) != 1 || first[0].String() != "93.184.216.34" {
			t.Fatal(first, err)
		}
		client := New(Config{Rules: Rules{AllowHTTP: true}, Resolver: names.resolver(), Timeout: 30 * time.Second})
		receipt := client.Deliver(t.Context(), parcel(t, "http://hooks.example.com:"+port+"/"))
		if receipt.Error != endpoint.AddressRefused {
			t.Fatalf("%+v", receipt)
		}
	})

	t.Run("ARedirectIsNotFollowed", func(t *testing.T) {
		t.Parallel()
		inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
		defer inside.Close()
		for _, status := range []int{301, 302, 303, 307, 308} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, status) }))
			receipt := New(Config{Rules: loopback()}).Deliver(t.Context(), parcel(t, server.URL))
			server.Close()
			if receipt.Error != endpoint.Redirected || receipt.Status != status {
				t.Errorf("%+v", receipt)
			}
		}
	})

	t.Run("RulesThatBecameStricterHold", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
		defer server.Close()
		if receipt := New(Config{}).Deliver(t.Context(), parcel(t, server.URL)); receipt.Error != endpoint.URLRefused {
			t.Fatalf("%+v", receipt)
		}
	})

	t.Run("NobodyThereIsNotConnected", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.NotFoundHandler())
		url := server.URL
		server.Close()
		if receipt := New(Config{Rules: loopback()}).Deliver(t.Context(), parcel(t, url)); receipt.Error != endpoint.NotConnected {
			t.Fatalf("%+v", receipt)
		}
	})
}

func TestReasonOf(t *testing.T) {
	t.Parallel()
	for want, err := range map[endpoint.Error]error{
		endpoint.NotResolved: &net.DNSError{IsNotFound: true},
		endpoint.TLSFailed:   tls.RecordHeaderError{Msg: "no"},
		endpoint.BadAnswer:   errors.New("malformed HTTP response"),
	} {
		if got := reasonOf(context.Background(), err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "120": 2 * time.Minute, "4294967295": 24 * time.Hour,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// names is a name server for one question at a time: it answers every question for addresses of the right family.
type names struct {
	conn   net.PacketConn
	answer func() string
	six    bool // the answers are IPv6 addresses
}

func newNames(t *testing.T, six bool, answer func() string) *names {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, answer: answer, six: six}
	t.Cleanup(func() { _ = conn.Close() })
	go n.serve()
	return n
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buffer := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = n.conn.WriteTo(n.reply(buffer[:size]), from)
	}
}

// reply answers a question with one address record, or with none when the address is of the other family.
func (n *names) reply(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	asked := binary.BigEndian.Uint16(question[end+1:])
	end += 5
	reply := append([]byte{}, question[:end]...)
	copy(reply[2:], []byte{0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	family := uint16(1)
	if n.six {
		family = 28
	}
	if asked != family {
		return reply
	}
	address := netip.MustParseAddr(n.answer()).AsSlice()
	reply[7] = 1
	reply = append(reply, 0xc0, 12)
	reply = binary.BigEndian.AppendUint16(reply, family)
	reply = append(reply, 0, 1, 0, 0, 0, 0, 0, byte(len(address)))
	return append(reply, address...)
}
