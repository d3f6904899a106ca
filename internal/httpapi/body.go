package httpapi

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

const jsonType = "application/json"

// takeBody reads the body, at most as many bytes of it as the operation takes, and checks that it is one strict JSON value in
// the one media type there is. Afterwards the request has that body again, in memory.
func takeBody(r *http.Request, op *operation) error {
	if !op.takesBody {
		return nil
	}
	if r.ContentLength > int64(op.maxBody) {
		return tooLarge(op)
	}
	// One byte more than allowed tells a body that is too large from one that just fits.
	raw, err := io.ReadAll(io.LimitReader(r.Body, int64(op.maxBody)+1))
	if err != nil {
		return fault.At(fault.InvalidBody, "", command.CompleteJSON)
	}
	if len(raw) > op.maxBody {
		return tooLarge(op)
	}
	setBody(r, raw)
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
	if raw, err = command.ReadJSON(raw); err != nil {
		return err
	}
	setBody(r, raw)
	return nil
}

func setBody(r *http.Request, raw []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
}

// tooLarge tells how large a body of the operation may be.
func tooLarge(op *operation) error {
	f := fault.New(fault.PayloadTooLarge)
	f.Details = map[string]any{"limit": op.maxBody}
	return f
}

// isJSON tells whether the body is plain JSON in UTF-8 by its headers.
func isJSON(header http.Header) bool {
	types := header.Values("Content-Type")
	if len(types) != 1 {
		return false
	}
	for _, encoding := range header.Values("Content-Encoding") {
		if !strings.EqualFold(encoding, "identity") {
			return false
		}
	}
	name, parameters, err := mime.ParseMediaType(types[0])
	charset, given := parameters["charset"]
	return err == nil && name == jsonType && (!given || strings.EqualFold(charset, "utf-8"))
}
