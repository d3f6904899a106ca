package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestProbe(t *testing.T) {
	t.Parallel()

	t.Run("SaysWhatReadyzSays", func(t *testing.T) {
		t.Parallel()
		var status atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.WriteHeader(int(status.Load()))
			_, _ = w.Write([]byte("the database does not answer\n"))
		}))
		t.Cleanup(server.Close)
		s := Settings{AdminListen: strings.TrimPrefix(server.URL, "http://")}
		status.Store(http.StatusOK)
		if err := ProbeAPI(t.Context(), s); err != nil {
			t.Errorf("ready: %v", err)
		}
		status.Store(http.StatusServiceUnavailable)
		if err := ProbeWorker(t.Context(), s); err == nil || err.Error() != "probe: the database does not answer" {
			t.Errorf("not ready: %v", err)
		}
		server.Close()
		if err := ProbeRepair(t.Context(), s); err == nil {
			t.Error("nobody listens, and the probe is content")
		}
	})

	t.Run("AsksWhereTheProcessListens", func(t *testing.T) {
		t.Parallel()
		for listen, want := range map[string]string{
			"": "127.0.0.1:8767", "0.0.0.0:9000": "127.0.0.1:9000", "[::]:9000": "127.0.0.1:9000", ":9000": "127.0.0.1:9000",
			"[::1]:9000": "[::1]:9000", "10.1.2.3:9000": "10.1.2.3:9000", "off": "", "nonsense": "",
		} {
			got, err := probed(listen, workerAdminPort)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q: asked %q, %v; want %q", listen, got, err, want)
			}
		}
	})
}
