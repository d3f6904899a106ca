package frame

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

//go:embed assets
var assets embed.FS

// file is one file that pages refer to, with a version that changes with it.
type file struct {
	mediaType string
	body      []byte
	version   string
}

func loadFiles() (map[string]file, error) {
	files := map[string]file{}
	for _, name := range []string{"console.css", "console.js", "htmx.min.js", "icon.svg", "LICENSE.htmx"} {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("console: %s: %w", name, err)
		}
		sum := sha256.Sum256(body)
		f := file{body: body, version: hex.EncodeToString(sum[:6])}
		switch path.Ext(name) {
		case ".css":
			f.mediaType = "text/css; charset=utf-8"
		case ".js":
			f.mediaType = "text/javascript; charset=utf-8"
		case ".svg":
			f.mediaType = "image/svg+xml"
		default:
			f.mediaType = "text/plain; charset=utf-8"
		}
		files[name] = f
	}
	return files, nil
}

// asset is the address of a file as it is now.
func (f *Frame) asset(name string) (string, error) {
	found, ok := f.files[name]
	if !ok {
		return "", fmt.Errorf("console: there is no file %s", name)
	}
	return Root + "/assets/" + name + "?v=" + found.version, nil
}

func (f *Frame) serveFile(w http.ResponseWriter, r *http.Request) {
	found, ok := f.files[r.PathValue("name")]
	if !ok {
		f.refuse(w, r, nil, fault.New(fault.RouteNotFound))
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == found.version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Content-Type", found.mediaType)
	header.Set("Content-Length", strconv.Itoa(len(found.body)))
	_, _ = w.Write(found.body) // a reader that has gone is all that can be wrong
}
