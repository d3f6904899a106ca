package testkit_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestProcess(t *testing.T) {
	t.Setenv("HOLDFAST_INHERITED", "1")
	start := func() *testkit.Process {
		return testkit.StartProcess(t, testkit.ProcessConfig{
			Path: os.Args[0], Env: []string{helperEnv + "=1", "HOLDFAST_GIVEN=given-value"},
		})
	}

	t.Run("KillEndsIt", func(t *testing.T) {
		p := start()
		p.WaitForOutput("given-value", 30*time.Second)
		p.WaitForOutput("ready", 30*time.Second)
		require.Equal(t, "ready\n", p.Stdout())
		require.Equal(t, "given-value\n", p.Stderr())
		env, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/environ")
		require.NoError(t, err)
		require.NotContains(t, string(env), "HOLDFAST_INHERITED")
		p.Kill()
		require.Equal(t, -1, p.Wait(time.Second))
	})

	t.Run("SignalIsDelivered", func(t *testing.T) {
		p := start()
		p.WaitForOutput("ready", 30*time.Second)
		p.Signal(syscall.SIGTERM)
		require.Equal(t, -1, p.Wait(30*time.Second))
	})

	t.Run("ExitCodeIsReported", func(t *testing.T) {
		p := testkit.StartProcess(t, testkit.ProcessConfig{Path: "/bin/sh", Args: []string{"-c", "exit 3"}})
		require.Equal(t, 3, p.Wait(30*time.Second))
	})
}
