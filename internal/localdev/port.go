package localdev

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports tried for "any free port" lie below the range from which Linux gives out source ports (32768 up), so that
// a server that is restarted on its port doesn't find somebody's outgoing connection there.
const (
	lowestPort  = 15000
	highestPort = 32000
	portTries   = 200 // each try hits a used port with less than 1 in 10, so 200 only fail when nothing can listen
)

func freePort() (int, error) {
	for range portTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if portFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port on 127.0.0.1: none of 200 tried could be used")
}

func portFree(port int) bool {
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func checkPort(port int) error {
	if port < 0 || port > 65535 {
		return fmt.Errorf("port %d is not between 0 and 65535", port)
	}
	return nil
}
