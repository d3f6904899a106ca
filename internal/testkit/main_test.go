package testkit_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// helperEnv makes this test binary a program under test.
const helperEnv = "TESTKIT_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		fmt.Println("ready")
		fmt.Fprintln(os.Stderr, os.Getenv("HOLDFAST_GIVEN"))
		select {}
	}
	os.Exit(testkit.Main(m))
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a busy machine's slowest step
	t.Cleanup(cancel)
	return ctx
}
