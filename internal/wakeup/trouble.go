package wakeup

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrRefused says that the server doesn't allow this process's user what it asked for.
var ErrRefused = errors.New("the server does not allow it to this user")

// trouble is why the client is not connected, in words of this package: what nats.go says can quote an address.
type trouble struct {
	mu     sync.Mutex
	reason string
}

// set tells whether the reason is another one than before.
func (t *trouble) set(reason string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.reason != reason
	t.reason = reason
	return changed
}

func (t *trouble) clear() { t.set("") }

func (t *trouble) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

// away notes why an attempt to connect failed and logs it when the reason is a new one: attempts come several times a
// second. It tells whether err is a reason at all.
func (c *Client) away(err error) bool {
	reason := reasonOf(err)
	if reason == "" {
		return false
	}
	if c.trouble.set(reason) {
		c.log.Warn().Str("reason", reason).Msg("nats can't be connected; trying on")
	}
	return true
}

// noSeed notes that the file of the nkey can't be read; err names the file and nothing of what is in it.
func (c *Client) noSeed(err error) {
	if c.trouble.set(err.Error()) {
		c.log.Error().Str("error", err.Error()).Msg("nats can't be connected without the nkey; trying on")
	}
}

// unwelcome is ErrDisconnected for a known reason.
type unwelcome struct{ reason string }

func (e *unwelcome) Error() string { return ErrDisconnected.Error() + ": " + e.reason }
func (e *unwelcome) Unwrap() error { return ErrDisconnected }

// Reason is why there is no connection, for an error of this package, where more is known than that nothing answers.
func Reason(err error) (string, bool) {
	e, ok := errors.AsType[*unwelcome](err)
	if !ok {
		return "", false
	}
	return e.reason, true
}

// disconnected is ErrDisconnected with the reason, where one is known.
func (c *Client) disconnected() error {
	if reason := c.trouble.text(); reason != "" {
		return &unwelcome{reason}
	}
	return ErrDisconnected
}

// failedTLS is said for whatever else breaks a handshake. A server that doesn't take the client's certificate closes the
// connection, and whether its reason arrives before is chance.
const failedTLS = "TLS with the server failed; it may want another client certificate"

// reasonOf is empty for an error that has nothing to do with who the two sides are.
func reasonOf(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the server's certificate has expired or is not valid yet"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is of no authority that this process trusts"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is for another name than the URL's"
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" { // crypto/tls calls an alert so
		return failedTLS
	}
	for known, reason := range map[error]string{
		nats.ErrAuthorization:      "the server refuses this user",
		nats.ErrAuthExpired:        "the server says that this user has expired",
		nats.ErrAuthRevoked:        "the server says that this user is revoked",
		nats.ErrNkeysNotSupported:  "the server takes no nkeys",
		nats.ErrSecureConnWanted:   "the server offers no TLS, and nothing is sent in plain text",
		nats.ErrSecureConnRequired: "the server wants TLS",
		nats.ErrTLS:                failedTLS,
	} {
		if errors.Is(err, known) {
			return reason
		}
	}
	return ""
}

// refusals end the questions under way when the server refuses something: it tells so beside the question, which would
// wait in vain for an answer.
type refusals struct {
	mu      sync.Mutex
	waiting map[*context.CancelCauseFunc]struct{}
	lookers bool // this user may not make stream and consumers
}

// ask bounds a question by the server's refusal of anything. Another question of this moment may be the one that was
// refused; both are asked again by whoever needs them.
func (r *refusals) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	if r.waiting == nil {
		r.waiting = map[*context.CancelCauseFunc]struct{}{}
	}
	r.waiting[&cancel] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, &cancel)
		r.mu.Unlock()
		cancel(nil)
	}()
	err := question(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrRefused) {
		return ErrRefused
	}
	return err
}

// create is ask for making something. After a refusal nothing is asked until the next connection: other rights come with
// one.
func (r *refusals) create(ctx context.Context, question func(context.Context) error) error {
	r.mu.Lock()
	refused := r.lookers
	r.mu.Unlock()
	if refused {
		return ErrRefused
	}
	err := r.ask(ctx, question)
	if errors.Is(err, ErrRefused) {
		r.mu.Lock()
		r.lookers = true
		r.mu.Unlock()
	}
	return err
}

func (r *refusals) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for cancel := range r.waiting {
		(*cancel)(ErrRefused)
	}
}

func (r *refusals) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookers = false
}
