package localdev_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// helperEnv makes this test binary a parent that owns a server and waits to be killed.
const helperEnv = "HOLDFAST_LOCALDEV_HELPER"

type helperReport struct {
	PID int    `json:"pid"`
	URL string `json:"url"`
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		runHelper(dir)
	}
	os.Exit(m.Run())
}

func runHelper(dir string) {
	pg, err := localdev.StartPostgres(context.Background(), localdev.PostgresConfig{DataDir: dir, Fsync: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(helperReport{PID: pg.PID(), URL: pg.URL()}); err != nil {
		os.Exit(1)
	}
	select {}
}
