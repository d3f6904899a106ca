package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

const jsonType = "application/json"

// takeBody reads the body, at most command.MaxBody bytes of it, and checks that it is one strict JSON value in
// the one media type there is. Afterwards the request has that body again, in memory.
func takeBody(r *http.Request, op *operation) error {
	if !op.takesBody {
		return nil
	}
	if r.ContentLength > command.MaxBody {
		return fault.New(fault.PayloadTooLarge)
	}
	// One byte more than allowed tells a body that is too large from one that just fits.
	raw, err := io.ReadAll(io.LimitReader(r.Body, command.MaxBody+1))
	if err != nil {
		return fault.Wrap(fault.InvalidBody, errUnreadable)
	}
	if len(raw) > command.MaxBody {
		return fault.New(fault.PayloadTooLarge)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	if len(raw) == 0 {
		if op.route.Operation.RequestBody.Value.Required {
			return fault.At(fault.InvalidBody, "", "valid JSON")
		}
		return nil
	}
	if !isJSON(r.Header) {
		return fault.New(fault.UnsupportedMediaType)
	}
	r.Header.Set("Content-Type", jsonType)
	return command.CheckJSON(raw)
}

var errUnreadable = errors.New("the body ended early")

// isJSON tells whether the body is plain JSON in UTF-8 by its headers.
func isJSON(header http.Header) bool {
	types := header.Values("Content-Type")
	if len(types) != 1 || len(header.Values("Content-Encoding")) > 0 {
		return false
	}
	name, parameters, err := mime.ParseMediaType(types[0])
	charset, given := parameters["charset"]
	return err == nil && name == jsonType && (!given || strings.EqualFold(charset, "utf-8"))
}
