package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// natsRole makes this test binary a NATS server instead: NATS is then a process that can be killed and frozen. Its value is
// port and store, as 4222:/path.
const natsRole = "HOLDFAST_CHAOS_NATS"

// playRole does what the environment makes of this process and returns true, or returns false in an ordinary one.
// TestMain calls it before anything else.
func playRole() (played bool, code int) {
	role := os.Getenv(natsRole)
	if role == "" {
		return false, 0
	}
	if err := runNATS(role); err != nil {
		fmt.Fprintln(os.Stderr, "chaos nats:", err)
		return true, 1
	}
	return true, 0
}

func runNATS(role string) error {
	portText, store, ok := strings.Cut(role, ":")
	port, err := strconv.Atoi(portText)
	if err != nil || !ok {
		return errors.New(natsRole + " must be port:store")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server, err := localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: store, Port: port})
	if err != nil {
		return err
	}
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // a store of hints closes in milliseconds
	defer cancel()
	return server.Stop(ctx)
}
