package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	eventStreamType = "text/event-stream"
	// streamRetry is the Retry-After of a workspace with all its streams in use: one ends within minutes, not seconds.
	streamRetry   = 10 * time.Second
	errReaderGone = fault.Plain("the reader of the stream has gone")
)

// Streams opens streams of a workspace's events.
type Streams interface {
	Open(ctx context.Context, query recall.StreamQuery) (*recall.Stream, error)
}

// StreamConfig holds the bounds of streams. The zero value is the defaults.
type StreamConfig struct {
	// Max bounds the streams of this process; a further one is refused with UNAVAILABLE. Default 500: each reads twice
	// in four seconds when nothing happens, together 250 short reads a second.
	Max int
	// MaxPerWorkspace bounds those of one workspace; a further one is refused with RATE_LIMITED. Default 50: one for each
	// process of a fleet that follows all of it.
	MaxPerWorkspace int
	// Age ends a stream, a tenth sooner or later, so that streams spread over processes anew. Default an hour.
	Age time.Duration
	// Heartbeat is how often a silent stream shows that it lives. Default 15 s: proxies cut after 30 s and more.
	Heartbeat time.Duration
	// Renew is how often it is checked that the key still allows the stream. Default a minute.
	Renew time.Duration
	// Send is how long one message may take to a reader. One that is slower reconnects and goes on where it was. Default
	// 10 s.
	Send time.Duration
}

func (c StreamConfig) withDefaults() (StreamConfig, error) {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.Age, time.Hour}, {&c.Heartbeat, 15 * time.Second}, {&c.Renew, time.Minute}, {&c.Send, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
		if *d.value < 0 {
			return c, errors.New("httpapi: the times of streams must not be negative")
		}
	}
	if c.Max == 0 {
		c.Max = 500
	}
	if c.MaxPerWorkspace == 0 {
		c.MaxPerWorkspace = 50
	}
	if c.Max < 1 || c.MaxPerWorkspace < 1 {
		return c, errors.New("httpapi: at least one stream must be possible")
	}
	return c, nil
}

// bound is the longest time of a stream's request.
func (c StreamConfig) bound() time.Duration { return c.Age + c.Age/10 + requestBound }

// following counts the open streams.
type following struct {
	mu   sync.Mutex
	all  int
	each map[uuid.UUID]int
}

// Following is how many streams are open.
func (s *Server) Following() int {
	s.following.mu.Lock()
	defer s.following.mu.Unlock()
	return s.following.all
}

// enter takes a place for a stream of the workspace. Faults: UNAVAILABLE, RATE_LIMITED.
func (f *following) enter(workspace uuid.UUID, c StreamConfig) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.each[workspace] >= c.MaxPerWorkspace {
		full := fault.New(fault.RateLimited)
		full.RetryAfter = streamRetry
		return nil, full
	}
	if f.all >= c.Max {
		return nil, fault.New(fault.UnavailableNow)
	}
	f.all++
	f.each[workspace]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all--
		if f.each[workspace]--; f.each[workspace] == 0 {
			delete(f.each, workspace)
		}
	}, nil
}

// StreamEvents tells what happens in the workspace, from a place on or from now on, until one of both has enough.
func (s *Server) StreamEvents(ctx context.Context, request contract.StreamEventsRequestObject) (contract.StreamEventsResponseObject, error) {
	this := callOf(ctx)
	query := recall.StreamQuery{Workspace: this.caller.Workspace.ID}
	for _, kind := range or(request.Params.Type, nil) {
		if task.Kind(kind) == task.Webhook {
			return nil, inQuery("/type", "a type other than webhook_delivery")
		}
		query.Kinds = append(query.Kinds, task.Kind(kind))
	}
	for _, status := range or(request.Params.Status, nil) {
		query.Outcomes = append(query.Outcomes, outcomeOf(status))
	}
	places := listing{workspace: this.caller.Workspace, endpoint: "stream"}
	from := request.Params.LastEventID // a client that reconnects repeats its first address: the header is newer
	if from == nil || *from == "" {
		from = request.Params.After
	}
	at, err := places.open(from)
	if err != nil {
		return nil, err
	}
	if at != nil {
		query.After = &task.FeedPlace{XID: at.XID, TaskID: at.ID, Generation: at.Generation, Claim: at.Claim}
	}
	leave, err := s.following.enter(query.Workspace, s.config.Streams)
	if err != nil {
		return nil, err
	}
	stream, err := s.deps.Streams.Open(ctx, query)
	if err != nil {
		leave()
		return nil, err
	}
	return streamAnswer{ctx: ctx, server: s, call: this, places: places, stream: stream, leave: leave}, nil
}

func outcomeOf(status contract.StreamEventsParamsStatus) task.FeedOutcome {
	switch status {
	case contract.StreamEventsParamsStatusSUCCEEDED:
		return task.FeedSucceeded
	case contract.StreamEventsParamsStatusFAILED:
		return task.FeedFailed
	case contract.StreamEventsParamsStatusRETRYING:
	}
	return task.FeedRetrying
}

// streamAnswer follows a stream.
type streamAnswer struct {
	ctx    context.Context
	server *Server
	call   *call
	places listing
	stream *recall.Stream
	leave  func()
}

// VisitStreamEventsResponse implements the generated interface. However a stream ends, its reader reconnects and goes on
// where it was: an error after the beginning only ends it sooner.
func (a streamAnswer) VisitStreamEventsResponse(w http.ResponseWriter) error {
	defer a.leave()
	defer a.stream.Close()
	w.Header().Set("Content-Type", eventStreamType)
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep messages back
	to := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if a.call.head {
		return nil
	}
	a.call.leave()
	age := a.server.config.Streams.Age
	age += rand.N(age/5+1) - age/10 // #nosec G404 -- jitter
	ctx, cancel := context.WithTimeout(a.ctx, age)
	defer cancel()
	go func() {
		select {
		case <-a.server.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := a.follow(ctx, sender{w, to, a.server.config.Streams.Send})
	bound(to, a.server.config.Streams.Send) // what is sent last, the end itself, has its time too
	if err != nil && !errors.Is(err, errReaderGone) && !a.call.left() {
		f := faultOf(err)
		a.call.code = f.Code
		if kind := f.Kind(); kind == fault.Internal || kind == fault.Unavailable {
			logFailure(zerolog.Ctx(a.ctx), f, err)
		}
	}
	return nil
}

// follow sends what the stream tells until ctx ends or something fails.
func (a streamAnswer) follow(ctx context.Context, to sender) error {
	config := a.server.config.Streams
	hello := "retry: " + strconv.Itoa(1000+rand.IntN(2000)) + "\n" // #nosec G404 -- jitter
	if err := a.beat(to, hello); err != nil {
		return err
	}
	renewed := time.Now()
	for {
		told, err := a.stream.Next(ctx, min(config.Heartbeat, config.Renew))
		if err != nil || ctx.Err() != nil {
			return err
		}
		if time.Since(renewed) >= config.Renew {
			if err := a.renew(ctx); err != nil {
				return err
			}
			renewed = time.Now()
		}
		for _, one := range told {
			if err := a.send(to, one); err != nil {
				return err
			}
		}
		if len(told) == 0 {
			if err := a.beat(to, ""); err != nil {
				return err
			}
		}
	}
}

// renew checks that the key still allows the stream. Faults are those of a request.
func (a streamAnswer) renew(ctx context.Context) error {
	caller, err := a.server.deps.Authenticator.Authenticate(ctx, a.call.secret)
	if err != nil {
		return err
	}
	return caller.Require(access.OperationsRead)
}

// beat shows that the stream lives and moves its reader's place on, so that nothing is looked through twice. It tells
// when something is held back.
func (a streamAnswer) beat(to sender, head string) error {
	place, err := a.placeText(a.stream.Place())
	if err != nil {
		return err
	}
	comment := ": alive\n"
	if held := a.stream.Held(); held >= time.Second {
		comment = ": held back for " + strconv.Itoa(int(held.Seconds())) + " s\n"
	}
	return to.send(head + comment + "id: " + place + "\n\n")
}

func (a streamAnswer) send(to sender, told recall.Told) error {
	place, err := a.placeText(told.Place)
	if err != nil {
		return err
	}
	data, err := encode(eventOf(told.Event)) // JSON without a line break but the one at its end
	if err != nil {
		return err
	}
	return to.send("id: " + place + "\nevent: event." + string(told.Outcome) + "\ndata: " + string(data) + "\n")
}

func (a streamAnswer) placeText(place task.FeedPlace) (string, error) {
	return a.places.seal(position{
		Version: cursorVersion, XID: place.XID, ID: place.TaskID, Generation: place.Generation, Claim: place.Claim,
	})
}

// sender sends messages of a stream, each at once and each within its bound.
type sender struct {
	w     http.ResponseWriter
	to    *http.ResponseController
	bound time.Duration
}

func (s sender) send(message string) error {
	bound(s.to, s.bound)
	if _, err := s.w.Write([]byte(message)); err != nil {
		return fmt.Errorf("%w: %w", errReaderGone, err)
	}
	if err := s.to.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errReaderGone, err)
	}
	return nil
}

// bound gives the next thing that is sent its time, from now on.
func bound(to *http.ResponseController, within time.Duration) {
	_ = to.SetWriteDeadline(time.Now().Add(within)) // a writer without deadlines has no slow reader
}
