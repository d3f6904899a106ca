package frame

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// secretSize is that of a key's secret.
	secretSize = 32
	// overTLS is the cookie's name where it is bound to this host and to TLS, plain where a browser on this machine
	// speaks to it without.
	overTLS = "__Host-holdfast-console"
	plain   = "holdfast-console"
)

// secretOf is what the browser holds of its session. Of the two names only the one that fits the connection counts.
func secretOf(r *http.Request) ([]byte, bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return nil, false
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(cookie.Value)
	return secret, err == nil && len(secret) == secretSize
}

// idOf is what is stored of it.
func idOf(secret []byte) [sha256.Size]byte { return sha256.Sum256(secret) }

// csrfOf is what the forms of the session's pages carry. It tells nothing of the secret.
func csrfOf(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("holdfast/console/form/1"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func cookieName(r *http.Request) string {
	if local(r) {
		return plain
	}
	return overTLS
}

// local tells whether a browser of this machine speaks to this process without TLS and without a proxy between.
func local(r *http.Request) bool {
	if r.TLS != nil || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("X-Forwarded-Proto") != "" || r.Header.Get("Forwarded") != "" {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return (err != nil || peer.Addr().IsLoopback()) && loopback(r.Host)
}

func loopback(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}

// newSecret is for one session.
func newSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

func setCookie(w http.ResponseWriter, r *http.Request, secret []byte) {
	c := &http.Cookie{ // #nosec G124 -- without Secure only to a browser of this machine
		Name: cookieName(r), Value: base64.RawURLEncoding.EncodeToString(secret), Path: "/", HttpOnly: true, Secure: !local(r),
		SameSite: http.SameSiteStrictMode, MaxAge: int(access.SessionLife.Seconds()),
	}
	if secret == nil {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// sameOrigin tells whether a page of this console sends the request: by the browser's own word, which also holds behind a
// proxy that changes the host, or by the origin. Whoever says neither is no browser.
func sameOrigin(r *http.Request) bool {
	if said := r.Header.Get("Sec-Fetch-Site"); said != "" {
		return said == "same-origin"
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
}

// sent checks that a form of this session sends the request.
func (v *Visit) sent() error {
	if !sameOrigin(v.Request) {
		return fault.New(fault.InsufficientPermission)
	}
	if err := v.Request.ParseForm(); err != nil {
		return fault.At(fault.InvalidRequest, "", "a form")
	}
	if !hmac.Equal([]byte(v.Request.PostForm.Get("csrf")), []byte(v.csrf)) {
		return fault.New(fault.InsufficientPermission)
	}
	return nil
}

// originOf is the address of whoever is connected: behind a proxy, the proxy's.
func originOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
