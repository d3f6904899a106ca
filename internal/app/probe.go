package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// probeBound is how long an answer may take: /readyz gives up on its dependencies earlier.
const probeBound = 4 * time.Second

// Probe asks the process of the same kind on this machine instead of running one. Images have no other program that could.
type Probe struct {
	Probe bool `env:"-" help:"Ask the process that runs here with the same settings whether it is ready, and end: with 1 if it isn't."`
}

// ProbeAPI returns nil when the API that runs here with these settings is ready, and otherwise why it isn't.
func ProbeAPI(ctx context.Context, s Settings) error { return probe(ctx, s.AdminListen, apiAdminPort) }

// ProbeWorker is ProbeAPI for a worker.
func ProbeWorker(ctx context.Context, s Settings) error {
	return probe(ctx, s.AdminListen, workerAdminPort)
}

// ProbeRepair is ProbeAPI for repair.
func ProbeRepair(ctx context.Context, s Settings) error {
	return probe(ctx, s.AdminListen, repairAdminPort)
}

func probe(ctx context.Context, listen string, port int) error {
	address, err := probed(listen, port)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	where := url.URL{Scheme: "http", Host: address, Path: "/readyz"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer response.Body.Close()
	reason, err := io.ReadAll(io.LimitReader(response.Body, 1024)) // one line
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("probe: %s", strings.TrimSpace(string(reason)))
	}
	return nil
}

// probed is where the admin listener with that setting is reached from the same machine.
func probed(listen string, port int) (string, error) {
	switch listen {
	case "off":
		return "", errors.New("admin-listen is off, so that nobody can be asked")
	case "":
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
	}
	host, number, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("admin-listen: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens on every address, this one too
	}
	return net.JoinHostPort(host, number), nil
}
