package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// answerBound is longer than any answer that is not an error.
const answerBound = 30 * time.Second

// Conn is one connection that is kept alive. It understands as much HTTP/1.1 as the servers measured here speak:
// answers with a Content-Length or in chunks.
type Conn struct {
	host string
	conn net.Conn
	in   *bufio.Reader
	out  bytes.Buffer
	body []byte
}

// Dial connects to host:port.
func Dial(ctx context.Context, host string) (*Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &Conn{host: host, conn: conn, in: bufio.NewReader(conn)}, nil
}

// Close closes it.
func (c *Conn) Close() { _ = c.conn.Close() }

// Do sends one request with JSON and returns the answer, whose body is good until the next one. header is whole lines,
// each with its line end.
func (c *Conn) Do(method, path, header string, body []byte) (status int, answer []byte, err error) {
	c.out.Reset()
	fmt.Fprintf(&c.out, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		method, path, c.host, len(body), header)
	c.out.Write(body)
	if err := c.conn.SetDeadline(time.Now().Add(answerBound)); err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status, err = c.read(); err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return status, c.body, nil
}

func (c *Conn) read() (int, error) {
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(line, " ")
	if len(rest) < 3 {
		return 0, errors.New("no status line")
	}
	status, err := strconv.Atoi(rest[:3])
	if err != nil {
		return 0, errors.New("no status")
	}
	length, chunked := 0, false
	for {
		if line, err = c.line(); err != nil {
			return 0, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || length < 0 {
				return 0, errors.New("no length")
			}
		case "transfer-encoding":
			chunked = true
		}
	}
	c.body = c.body[:0]
	if chunked {
		return status, c.chunks()
	}
	return status, c.take(length)
}

func (c *Conn) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(line, 16, 32)
		if err != nil || size < 0 {
			return errors.New("no chunk size")
		}
		if err := c.take(int(size)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
	}
}

func (c *Conn) take(n int) error {
	old := len(c.body)
	if cap(c.body) < old+n {
		grown := make([]byte, old, 2*(old+n))
		copy(grown, c.body)
		c.body = grown
	}
	c.body = c.body[:old+n]
	_, err := io.ReadFull(c.in, c.body[old:])
	return err
}

func (c *Conn) line() (string, error) {
	b, err := c.in.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}
