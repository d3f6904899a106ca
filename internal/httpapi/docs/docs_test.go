package docs_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/docs"
)

// setup serves the reference beside the document that it draws.
func setup(t *testing.T) string {
	t.Helper()
	mount, err := docs.New()
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(deps(), httpapi.Config{Mounts: []httpapi.Mount{mount}})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	return listening.URL
}

// plainClient asks for nothing packed and unpacks nothing.
func plainClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableCompression: true}}
}

func get(t *testing.T, method, address string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := plainClient().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestFiles(t *testing.T) {
	t.Parallel()
	address := setup(t)
	t.Run("PageNeedsNoKeyAndForbidsForeignSources", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/docs", "/docs/", "/docs/docs.js", "/docs/swagger-ui.css"} {
			response := get(t, http.MethodGet, address+path)
			said := response.Header.Get("Content-Security-Policy")
			if response.StatusCode != http.StatusOK || !strings.HasPrefix(said, "default-src 'none'; script-src 'self';") ||
				strings.Contains(said, "unsafe") || strings.Contains(said, "http") || response.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Fatalf("%s: %d %v", path, response.StatusCode, response.Header)
			}
		}
	})
	t.Run("NothingElseIsThere", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{
			"/docs/README.md", "/docs/../openapi.yaml", "/docs/%2e%2e/docs.go", "/docs/assets/index.html", "/docs/index.html", "/docsx",
		} {
			response := get(t, http.MethodGet, address+path)
			if response.StatusCode != http.StatusNotFound || response.Header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%s: %d %v", path, response.StatusCode, response.Header)
			}
		}
		if response := get(t, http.MethodPost, address+"/docs"); response.StatusCode != http.StatusMethodNotAllowed ||
			response.Header.Get("Allow") != "GET, HEAD" {
			t.Fatalf("POST: %d %v", response.StatusCode, response.Header)
		}
	})
	t.Run("PackedOnlyForThoseWhoTakeIt", func(t *testing.T) {
		t.Parallel()
		const bundle = "/docs/swagger-ui-bundle.js"
		for accept, packed := range map[string]bool{"": false, "br": false, "gzip;q=0": false, "gzip": true, "br, gzip;q=0.5": true} {
			response := get(t, http.MethodGet, address+bundle, "Accept-Encoding", accept)
			if got := response.Header.Get("Content-Encoding") == "gzip"; got != packed {
				t.Fatalf("Accept-Encoding %q: packed is %v", accept, got)
			}
			body := io.Reader(response.Body)
			if packed {
				unpacked, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = unpacked
			}
			raw, err := io.ReadAll(body)
			if err != nil || len(raw) < 1_000_000 {
				t.Fatalf("%d bytes, %v", len(raw), err)
			}
		}
	})
	t.Run("KnownFileIsNotSentAgain", func(t *testing.T) {
		t.Parallel()
		tag := get(t, http.MethodGet, address+"/docs").Header.Get("ETag")
		if response := get(t, http.MethodGet, address+"/docs", "If-None-Match", tag); response.StatusCode != http.StatusNotModified {
			t.Fatalf("%d", response.StatusCode)
		}
		if response := get(t, http.MethodHead, address+"/docs"); response.StatusCode != http.StatusOK || response.ContentLength < 100 {
			t.Fatalf("HEAD: %d %d", response.StatusCode, response.ContentLength)
		}
	})
	t.Run("VendoredFilesAreThoseThatAreNamed", func(t *testing.T) {
		t.Parallel()
		readme, err := os.ReadFile("assets/README.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"swagger-ui-bundle.js", "swagger-ui.css"} {
			raw, err := io.ReadAll(get(t, http.MethodGet, address+"/docs/"+name).Body)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(raw)
			if !strings.Contains(string(readme), "| `"+name+"` | `"+hex.EncodeToString(sum[:])+"` |") {
				t.Fatalf("%s is another one than assets/README.md names", name)
			}
		}
	})
}

// deps are those of a server of which only the document is read.
func deps() httpapi.Deps {
	return httpapi.Deps{
		Authenticator: struct{ httpapi.Authenticator }{}, Log: zerolog.Nop(), Accepter: struct{ httpapi.Accepter }{},
		Searcher: struct{ httpapi.Searcher }{}, Writer: struct{ httpapi.Writer }{}, Changer: struct{ httpapi.Changer }{},
		Batcher: struct{ httpapi.Batcher }{}, Eraser: struct{ httpapi.Eraser }{}, Retrier: struct{ httpapi.Retrier }{},
		Canceller: struct{ httpapi.Canceller }{}, Events: struct{ httpapi.Events }{}, ItemEvents: struct{ httpapi.ItemEvents }{},
		Memories: struct{ httpapi.Memories }{}, Entities: struct{ httpapi.Entities }{}, Mover: struct{ httpapi.Mover }{},
		Exports: struct{ httpapi.Exports }{}, Credits: struct{ httpapi.Credits }{}, Health: struct{ httpapi.Health }{},
		Webhooks: struct{ httpapi.Webhooks }{}, WebhookReader: struct{ httpapi.WebhookReader }{}, Replayer: struct{ httpapi.Replayer }{},
		Streams: struct{ httpapi.Streams }{}, Policies: struct{ httpapi.Policies }{}, Feedbacks: struct{ httpapi.Feedbacks }{},
	}
}
