package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

const (
	problemType = "application/problem+json"
	// problemPage is where each code is explained; a code in small letters is its anchor.
	problemPage = "https://github.com/holdfast-memory/holdfast/blob/main/docs/errors.md#"
	// retrySoon is the Retry-After of refusals that know no better.
	retrySoon = time.Second
)

// refuse is Echo's error handler: every error of a request ends here.
func (s *Server) refuse(err error, c echo.Context) {
	if c.Response().Committed {
		return // an answer has begun; the connection is all that is left to lose
	}
	s.problem(c.Response(), c.Request(), err)
}

// problem writes err as a problem document. It is the one place where a fault becomes HTTP, and where a failure
// of ours is logged: with its code and kind, never with its text.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	f := faultOf(err)
	this := callOf(r.Context())
	this.code = f.Code
	if kind := f.Kind(); (kind == fault.Internal || kind == fault.Unavailable) && !this.left() {
		logFailure(zerolog.Ctx(r.Context()), f, err)
	}
	described := fault.Describe(f.Code)
	body := contract.Problem{
		Type: problemPage + strings.ToLower(string(f.Code)), Title: described.Title, Status: statusOf(f.Code),
		Detail: described.Message, Code: string(f.Code), Message: described.Message, RequestId: this.requestID,
		Retryable: described.Retryable,
	}
	details := maps.Clone(f.Details)
	if f.Rule != "" && described.Kind == fault.Invalid {
		if details == nil {
			details = map[string]any{}
		}
		details["pointer"], details["rule"] = f.Pointer, f.Rule
		body.Detail = strings.TrimPrefix(f.Pointer+": "+f.Rule, ": ")
	}
	if len(details) > 0 {
		body.Details = &details
	}
	header := w.Header()
	switch body.Status {
	case http.StatusMethodNotAllowed:
		if allow := header.Get("Allow"); strings.Contains(allow, http.MethodGet) {
			header.Set("Allow", allow+", "+http.MethodHead)
		}
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if f.Code == fault.TooManyPending {
			s.shed("pending")
		}
		header.Set("Retry-After", seconds(max(f.RetryAfter, retrySoon)))
	case http.StatusConflict:
		if described.Retryable {
			header.Set("Retry-After", seconds(max(f.RetryAfter, retrySoon)))
		}
	}
	media, shape := problemType, any(body)
	if this.refuse != nil {
		media, shape = jsonType, this.refuse(body)
	}
	if err := send(w, body.Status, media, shape); err != nil {
		zerolog.Ctx(r.Context()).Debug().Str("code", string(f.Code)).Msg("the client left before its answer")
	}
}

// faultOf finds the fault in err: a fault of ours, Echo's own refusals by their status, what has run out of
// time, and INTERNAL for everything else.
func faultOf(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if refusal, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch refusal.Code {
		case http.StatusNotFound:
			return fault.New(fault.RouteNotFound)
		case http.StatusMethodNotAllowed:
			return fault.New(fault.MethodNotAllowed)
		case http.StatusBadRequest:
			return fault.New(fault.InvalidRequest)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Wrap(fault.UnavailableNow, err)
	}
	return fault.Wrap(fault.InternalError, err)
}

// logFailure logs what can be said without the texts of errors: they may hold rows and values. A step and a plain
// reason hold none. The fault is the one in err.
func logFailure(log *zerolog.Logger, f *fault.Error, err error) {
	line := log.Warn()
	if f.Kind() == fault.Internal {
		line = log.Error()
	}
	line = line.Str("code", string(f.Code))
	if at, ok := errors.AsType[interface {
		error
		Step() string
	}](err); ok {
		line = line.Str("step", at.Step())
	}
	if cause := f.Unwrap(); cause != nil {
		root := cause
		for next := errors.Unwrap(root); next != nil; next = errors.Unwrap(root) {
			root = next
		}
		if reason, ok := errors.AsType[fault.Plain](cause); ok {
			line = line.Str("reason", string(reason))
		} else {
			line = line.Str("cause", fmt.Sprintf("%T", root))
		}
		if state, ok := errors.AsType[interface {
			error
			SQLState() string
		}](cause); ok {
			line = line.Str("sqlstate", state.SQLState())
		}
	}
	line.Msg("request failed")
}

// StatusOf returns the HTTP status of a code, for documents.
func StatusOf(code fault.Code) int { return statusOf(code) }

// statusOf returns the HTTP status of a code (API.md, "Errors").
func statusOf(code fault.Code) int {
	switch code {
	case fault.InvalidBody, fault.InvalidRequest, fault.ScopeRequired, fault.IdempotencyKeyRequired,
		fault.InvalidIdempotencyKey, fault.InvalidCursor, fault.InvalidFilter, fault.WebhookURLRefused:
		return http.StatusBadRequest
	case fault.InvalidAPIKey, fault.APIKeyExpired:
		return http.StatusUnauthorized
	case fault.InsufficientCredits:
		return http.StatusPaymentRequired
	case fault.InsufficientPermission:
		return http.StatusForbidden
	case fault.MemoryNotFound, fault.EventNotFound, fault.RouteNotFound, fault.WebhookNotFound, fault.WorkspaceNotFound:
		return http.StatusNotFound
	case fault.MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case fault.IdempotencyConflict, fault.IdempotencyInProgress, fault.VersionConflict, fault.NotRetryable,
		fault.NotCancellable, fault.WorkspaceNotEmpty, fault.TooManyWebhooks:
		return http.StatusConflict
	case fault.InputExpired:
		return http.StatusGone
	case fault.PayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.UnsupportedMediaType:
		return http.StatusUnsupportedMediaType
	case fault.RateLimited, fault.TooManyPending:
		return http.StatusTooManyRequests
	case fault.UnavailableNow, fault.AcceptanceUnknown:
		return http.StatusServiceUnavailable
	case fault.NotImplemented:
		return http.StatusNotImplemented
	case fault.InternalError:
	}
	return http.StatusInternalServerError
}

// seconds rounds up, so that nobody asks again too early.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
