// Package docs serves the API reference: one page that draws the OpenAPI document of this server in a browser.
//
// Rules it guards: everything that the page needs is compiled in and comes from this server, so that it works without a
// network and tells nobody who reads it; the page's own policy forbids any other source, inline script and frame. It
// belongs to the httpapi family and imports nothing else of Holdfast but fault.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

//go:embed assets
var assets embed.FS

const (
	// root is the page's path; its files are below.
	root = "/docs"
	// policy lets the page use what this server sends, and the images that the style sheet holds as text.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// maxUnpacked bounds what a packed file becomes; the largest is 1.7 MB.
	maxUnpacked = 4 << 20
)

// file is one file of the page, in memory. Packed is empty for files that are kept as they are.
type file struct {
	mediaType string
	plain     []byte
	packed    []byte
	tag       string
}

// New returns the reference, to be mounted into an httpapi.Server.
func New() (httpapi.Mount, error) {
	files := map[string]file{}
	for address, name := range map[string]string{
		root: "index.html", root + "/theme.js": "theme.js", root + "/docs.js": "docs.js", root + "/docs.css": "docs.css",
		root + "/icon.svg": "icon.svg", root + "/swagger-ui.css": "swagger-ui.css.gz",
		root + "/swagger-ui-bundle.js": "swagger-ui-bundle.js.gz", root + "/license.txt": "LICENSE.swagger-ui",
		root + "/license-bundle.txt": "LICENSE.swagger-ui-bundle",
	} {
		f, err := load(name)
		if err != nil {
			return httpapi.Mount{}, fmt.Errorf("docs: %s: %w", name, err)
		}
		files[address] = f
	}
	return httpapi.Mount{Path: root + "/", Public: true, Handler: page{files}}, nil
}

func load(name string) (file, error) {
	kept, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return file{}, err
	}
	sum := sha256.Sum256(kept)
	f := file{plain: kept, tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
	if strings.HasSuffix(name, ".gz") {
		name = strings.TrimSuffix(name, ".gz")
		unpacked, err := gzip.NewReader(bytes.NewReader(kept))
		if err != nil {
			return file{}, err
		}
		if f.plain, err = io.ReadAll(io.LimitReader(unpacked, maxUnpacked)); err != nil {
			return file{}, err
		}
		f.packed = kept
	}
	switch path.Ext(name) {
	case ".html":
		f.mediaType = "text/html; charset=utf-8"
	case ".js":
		f.mediaType = "text/javascript; charset=utf-8"
	case ".css":
		f.mediaType = "text/css; charset=utf-8"
	case ".svg":
		f.mediaType = "image/svg+xml"
	default:
		f.mediaType = "text/plain; charset=utf-8"
	}
	return f, nil
}

type page struct{ files map[string]file }

func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := p.files[r.URL.Path]
	if !ok {
		httpapi.Refuse(w, r, fault.New(fault.RouteNotFound))
		return
	}
	if r.Method != http.MethodGet { // HEAD has become GET on its way
		w.Header().Set("Allow", http.MethodGet)
		httpapi.Refuse(w, r, fault.New(fault.MethodNotAllowed))
		return
	}
	header := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache", "ETag": f.tag, "Vary": "Accept-Encoding",
	} {
		header.Set(name, value)
	}
	if known := r.Header.Get("If-None-Match"); known == f.tag || known == "W/"+f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if f.packed != nil && takesGzip(r.Header) {
		header.Set("Content-Encoding", "gzip")
		body = f.packed
	}
	header.Set("Content-Type", f.mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a reader that has gone is all that can be wrong
}

// takesGzip tells whether gzip is named and not ruled out.
func takesGzip(header http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			return strings.Trim(q, "0.") != "" || q == ""
		}
	}
	return false
}
