package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// uploadBound is a little longer than the service takes for a snapshot.
	uploadBound = 11 * time.Minute
	// closeBound is how long the transport may go on reading a body after its attempt has failed; it stops at the next
	// read.
	closeBound = 5 * time.Second
	// footerBytes is more than a snapshot's last line has.
	footerBytes = 512
)

// ErrCutOff is the error of a snapshot that ends before its footer: export again.
var ErrCutOff = errors.New("holdfast: the snapshot is cut off")

// Snapshots exports and imports whole workspaces. All of it needs a key with the permission admin.
type Snapshots struct{ c *Client }

// Export asks for a snapshot. Wait for its event, then Read it.
func (s *Snapshots) Export(ctx context.Context, opts ...CallOption) (*Receipt, error) {
	w, err := keyedWrite("export", http.MethodPost, "/v1/exports", nil, opts)
	if err != nil {
		return nil, err
	}
	return s.c.accept(ctx, w)
}

// Read streams a finished snapshot by the id of its event; close it. It is whole if reading ends with io.EOF: one that is
// cut off ends with ErrCutOff or with the network's error. Only the beginning is repeated after a failure, and only the
// context bounds the rest.
func (s *Snapshots) Read(ctx context.Context, eventID string) (io.ReadCloser, error) {
	at, err := segment("read export", eventID)
	if err != nil {
		return nil, err
	}
	r := read("read export", "/v1/exports/"+at, nil)
	r.stream = true
	got, err := s.c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return &snapshot{body: got.rest}, nil
}

// Import sends a snapshot into the empty workspace of the key. It is read as it is sent, and sent again after a failure if
// it is an io.Seeker. Wait for the event: it tells whether the snapshot was right.
func (s *Snapshots) Import(ctx context.Context, from io.Reader, opts ...CallOption) (*Receipt, error) {
	w, err := keyedWrite("import", http.MethodPost, "/v1/imports", nil, opts)
	if err != nil {
		return nil, err
	}
	if w.upload, err = newUpload(from); err != nil {
		return nil, err
	}
	w.repeat, w.bound = w.upload.seeker != nil, uploadBound
	defer w.upload.end()
	return s.c.accept(ctx, w)
}

// snapshot passes a snapshot on and keeps its end.
type snapshot struct {
	body io.ReadCloser
	tail []byte
}

// Read implements io.Reader.
func (s *snapshot) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.tail = append(s.tail, p[max(0, n-footerBytes):n]...)
	s.tail = s.tail[max(0, len(s.tail)-footerBytes):]
	switch {
	case errors.Is(err, io.EOF) && !footed(s.tail):
		return n, ErrCutOff
	case err != nil && !errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: %w", ErrCutOff, err)
	}
	return n, err
}

// Close implements io.Closer.
func (s *snapshot) Close() error { return s.body.Close() }

func footed(tail []byte) bool {
	last, ended := bytes.CutSuffix(tail, []byte("\n"))
	return ended && bytes.HasPrefix(last[bytes.LastIndexByte(last, '\n')+1:], []byte(`{"type":"footer",`))
}

// upload gives a reader to one attempt after the other.
type upload struct {
	from   io.Reader
	seeker io.Seeker // nil if it can't be read again
	start  int64
	body   *body // of the attempt before
}

func newUpload(from io.Reader) (*upload, error) {
	u := &upload{from: from}
	seeker, ok := from.(io.Seeker)
	if !ok {
		return u, nil
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe has the method only
		return u, nil //nolint:nilerr // it is sent once
	}
	u.seeker, u.start = seeker, start
	return u, nil
}

// open returns the body of the next attempt, from the place where the reader was at first.
func (u *upload) open() (io.ReadCloser, error) {
	if u.body != nil {
		if !u.end() {
			return nil, errors.New("the attempt before still reads the snapshot")
		}
		if _, err := u.seeker.Seek(u.start, io.SeekStart); err != nil {
			return nil, errors.New("the snapshot can't be read again")
		}
	}
	u.body = &body{from: u.from, closed: make(chan struct{})}
	return u.body, nil
}

// end waits until nobody reads any more, so that the reader is the caller's again.
func (u *upload) end() bool {
	if u.body == nil {
		return true
	}
	select {
	case <-u.body.closed:
		return true
	case <-time.After(closeBound):
		return false
	}
}

// body tells when the transport, which may read on after an attempt has failed, is done with it.
type body struct {
	mu     sync.Mutex
	from   io.Reader
	once   sync.Once
	closed chan struct{}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closed:
		return 0, http.ErrBodyReadAfterClose
	default:
		return b.from.Read(p)
	}
}

// Close implements io.Closer. A read under way ends first.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.once.Do(func() { close(b.closed) })
	return nil
}
