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
	raw, err := readBody(r, op.maxBody)
	if err != nil {
		return err
	}
	setBody(r, raw)
	if len(raw) == 0 && op.route.Operation.RequestBody.Value.Required {
		return fault.At(fault.InvalidBody, "", "valid JSON")
	}
	return nil
}

// readBody reads a body of at most that many bytes and checks that it is one strict JSON value in the one media type
// there is; nil and no error without one.
func readBody(r *http.Request, most int) ([]byte, error) {
	if r.ContentLength > int64(most) {
		return nil, tooLarge(most)
	}
	// One byte more than allowed tells a body that is too large from one that just fits.
	raw, err := io.ReadAll(io.LimitReader(r.Body, int64(most)+1))
	if err != nil {
		return nil, fault.At(fault.InvalidBody, "", command.CompleteJSON)
	}
	if len(raw) > most {
		return nil, tooLarge(most)
	}
	if len(raw) == 0 {
		return nil, nil
	}
	if !isJSON(r.Header) {
		return nil, fault.New(fault.UnsupportedMediaType)
	}
	r.Header.Set("Content-Type", jsonType)
	return command.ReadJSON(raw)
}

func setBody(r *http.Request, raw []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
}

// tooLarge tells how large a body may be.
func tooLarge(most int) error {
	f := fault.New(fault.PayloadTooLarge)
	f.Details = map[string]any{"limit": most}
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
