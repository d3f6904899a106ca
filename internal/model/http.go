package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// Proxy chooses the proxy of a request, none if it returns nil. http.ProxyFromEnvironment is one.
type Proxy func(*http.Request) (*url.URL, error)

// ErrAnswerTooLarge is what reading a provider's answer ends with beyond its bound.
var ErrAnswerTooLarge = errors.New("the provider's answer is too large")

// NewHTTPClient returns a client that reads at most maxAnswer bytes of an answer, decompressed, follows no
// redirect and reads no environment. How long a call may take is its context's business; the bounds here end
// what a context with a long deadline would wait for in vain.
func NewHTTPClient(maxAnswer int64, proxy Proxy) *http.Client {
	dialer := &net.Dialer{
		Timeout:   10 * time.Second, // a host that takes longer to accept is down
		KeepAlive: 30 * time.Second, // finds dead peers during a long answer
	}
	transport := &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           64, // as many as a worker has slots at most
		MaxIdleConnsPerHost:    64, // all of them talk to the one provider
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{
		Transport:     &boundedTransport{next: transport, limit: maxAnswer},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedTransport bounds the bodies of answers.
type boundedTransport struct {
	next  *http.Transport
	limit int64
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{body: response.Body, left: t.limit}
	return response, nil
}

// CloseIdleConnections lets http.Client reach the pool.
func (t *boundedTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

type boundedBody struct {
	body io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		n, err := b.body.Read(one[:])
		if n > 0 {
			return 0, ErrAnswerTooLarge
		}
		return 0, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }

// BaseURL checks a provider's address. It must be absolute, http or https, and hold no credentials, which
// would leak into the provider's name, no query and no fragment. The error names the setting to mend.
func BaseURL(raw string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(raw, "/"))
	switch {
	case err != nil:
		return nil, errors.New("the base URL cannot be read; write it like http://127.0.0.1:11434/v1")
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, errors.New("the base URL must be absolute; write it like http://127.0.0.1:11434/v1")
	case base.User != nil:
		return nil, errors.New("the base URL holds credentials; put them into the API key")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the base URL must end with its path")
	}
	return base, nil
}

// Unanswered classifies a call that brought no usable HTTP answer: err is what the transport or the decoder
// said, status what the answer began with, 0 if there was none. Of err only the end of a context is kept.
func Unanswered(ctx context.Context, err error, status int) *Error {
	failure := unanswered(ctx, err, status)
	failure.Status = status
	return failure
}

func unanswered(ctx context.Context, err error, status int) *Error {
	var network net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return NewError(task.Shutdown, "cancelled", context.Canceled)
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return NewError(task.ProviderTimeout, "deadline", context.DeadlineExceeded)
	case errors.Is(err, ErrAnswerTooLarge):
		return NewError(task.OutputInvalid, ReasonTooLarge, ErrAnswerTooLarge)
	case errors.As(err, &network) && network.Timeout():
		return NewError(task.ProviderTimeout, "network timeout", nil)
	case status >= 300 && status < 400:
		return NewError(task.ProviderRejected, "redirect", nil)
	case status >= 400:
		return refused(Refusal{Status: status})
	case status != 0:
		return NewError(task.ProviderUnavailable, "unreadable answer", nil)
	default:
		return NewError(task.ProviderUnavailable, "no connection", nil)
	}
}

// Bounded returns ctx with the adapter's own deadline. The earlier one of both holds.
func Bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, timeout)
}

// CheckTimeout refuses deadlines that no call could meet or that would hold a lease for hours.
func CheckTimeout(timeout time.Duration) error {
	if timeout < time.Millisecond || timeout > time.Hour {
		return fmt.Errorf("the model timeout must be 1ms to 1h, not %s", timeout)
	}
	return nil
}
