package stubmodel

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// New starts a server on a free port of 127.0.0.1 and closes it at the end of the test.
func New(t TB) *Server {
	t.Helper()
	server, err := Start("")
	if err != nil {
		t.Fatalf("start the stub model: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Fatalf("close the stub model: %v", err)
		}
	})
	return server
}
