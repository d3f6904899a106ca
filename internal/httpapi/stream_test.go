package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// streamPatience bounds the waits of these tests.
const streamPatience = 30 * time.Second

// worldFeed is the store below the real streams. Its horizon is behind all entries.
type worldFeed struct {
	*world
	entries []task.FeedEntry
	held    time.Duration
	broken  error
}

func (f *worldFeed) Feed(_ context.Context, _ uuid.UUID, after *task.FeedPlace, limit int) (task.FeedPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	page := task.FeedPage{Next: task.FeedPlace{XID: uint64(len(f.entries)) + 1}, Held: f.held}
	if f.broken != nil {
		return page, f.broken
	}
	if after == nil {
		return page, nil
	}
	if after.XID > page.Next.XID {
		return page, fault.New(fault.InvalidCursor)
	}
	for _, e := range f.entries {
		behind := e.Place.XID > after.XID || e.Place.XID == after.XID && after.TaskID == uuid.Nil
		if behind && len(page.Entries) < limit {
			page.Entries = append(page.Entries, e)
		}
	}
	if len(page.Entries) == limit {
		page.Next, page.More = page.Entries[limit-1].Place, true
	}
	return page, nil
}

func (f *worldFeed) EventsByID(_ context.Context, workspace uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]recall.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[uuid.UUID]recall.Event{}
	for _, id := range ids {
		if event, known := f.events[id]; known && f.owners[id] == workspace {
			found[id] = event
		}
	}
	return found, nil
}

// happen stores an event and tells of it in the feed, with a notice.
func (w *world) happen(outcome task.FeedOutcome, event recall.Event) recall.Event {
	w.put("all", event)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed.entries = append(w.feed.entries, task.FeedEntry{
		Place: task.FeedPlace{XID: uint64(len(w.feed.entries)) + 1, TaskID: event.ID, Generation: 1}, Kind: event.Kind, Outcome: outcome,
	})
	if signal := w.signals[uuid.Nil]; signal != nil {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
	return event
}

// message is one message of a stream; one without a name only moves the place on.
type message struct {
	id, name, data, comment, retry string
}

// listener is a stream that is read.
type listener struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
	hangUp   func()
}

// listen opens a stream that must begin.
func (w *world) listen(t *testing.T, url, query string, change ...func(*http.Request)) *listener {
	t.Helper()
	l := w.dial(t, url, query, change...)
	if l.response.StatusCode != 200 || l.response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %v", l.response.StatusCode, l.response.Header)
	}
	return l
}

func (w *world) dial(t *testing.T, url, query string, change ...func(*http.Request)) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), streamPatience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/events/stream"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.keys["all"].Reveal())
	for _, f := range change {
		f(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{t: t, response: response, lines: bufio.NewScanner(response.Body)}
	l.hangUp = sync.OnceFunc(func() {
		cancel()
		_ = response.Body.Close()
	})
	t.Cleanup(l.hangUp)
	return l
}

// next reads one message; false when the stream has ended.
func (l *listener) next() (m message, more bool) {
	for l.lines.Scan() {
		field, value, _ := strings.Cut(l.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "":
			if l.lines.Text() == "" {
				return m, true
			}
			m.comment = value
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data += value
		case "retry":
			m.retry = value
		default:
			l.t.Fatalf("line %q", l.lines.Text())
		}
	}
	return m, false
}

// told reads until an event is told.
func (l *listener) told() message {
	l.t.Helper()
	for {
		m, more := l.next()
		if !more {
			l.t.Fatal("the stream ended")
		}
		if m.name != "" {
			return m
		}
	}
}

func (l *listener) wantTold(name string, event recall.Event) message {
	l.t.Helper()
	m := l.told()
	var shown contract.Event
	if err := json.Unmarshal([]byte(m.data), &shown); err != nil {
		l.t.Fatalf("data %q: %v", m.data, err)
	}
	if m.name != name || shown.Id != eventID(event.ID) || string(shown.Status) != string(event.Status) || m.id == "" {
		l.t.Fatalf("told %+v, want %s of %s", m, name, event.ID)
	}
	return m
}

func (l *listener) wantEnd() {
	l.t.Helper()
	for {
		m, more := l.next()
		if !more {
			break
		}
		if m.name != "" {
			l.t.Fatalf("told %+v", m)
		}
	}
	if err := l.lines.Err(); err != nil {
		l.t.Fatalf("the stream didn't end, it broke: %v", err)
	}
}

func serveStreams(t *testing.T, bounds StreamConfig, change ...func(*Config)) (*world, string) {
	t.Helper()
	w := setup(t, append(change, func(c *Config) { c.Streams = bounds })...)
	server := httptest.NewServer(w.server.Handler())
	t.Cleanup(func() {
		w.server.drain()
		server.Close()
	})
	return w, server.URL
}

func lastID(id string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Last-Event-ID", id) }
}

func TestStream(t *testing.T) {
	t.Parallel()
	t.Run("TellsWhatComesFromNowOn", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		w.happen(task.FeedSucceeded, eventIn(task.EventSucceeded))
		l := w.listen(t, url, "")
		hello, _ := l.next()
		if hello.id == "" || hello.retry == "" || hello.name != "" || hello.data != "" {
			t.Fatalf("begins with %+v", hello)
		}
		l.wantTold("event.failed", w.happen(task.FeedFailed, eventIn(task.EventFailed)))
		l.wantTold("event.retrying", w.happen(task.FeedRetrying, eventIn(task.EventRetrying)))
		l.wantTold("event.succeeded", w.happen(task.FeedSucceeded, eventIn(task.EventSucceeded)))
	})
	t.Run("ShowsAnEventAsItIsNow", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		hello, _ := w.listen(t, url, "").next()
		event := w.happen(task.FeedRetrying, eventIn(task.EventRetrying))
		event.Status = task.EventRunning
		w.put("all", event)
		w.listen(t, url, "?after="+hello.id).wantTold("event.retrying", event)
	})
	t.Run("GoesOnBehindTheLastID", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		hello, _ := w.listen(t, url, "").next()
		one, two := w.happen(task.FeedSucceeded, eventIn(task.EventSucceeded)), w.happen(task.FeedFailed, eventIn(task.EventFailed))
		l := w.listen(t, url, "?after="+hello.id)
		first := l.wantTold("event.succeeded", one)
		l.hangUp()
		again := w.listen(t, url, "?after="+hello.id, lastID(first.id)) // the header is the newer one
		second := again.wantTold("event.failed", two)
		if repeat := w.listen(t, url, "", lastID(first.id)).wantTold("event.failed", two); repeat.id != second.id {
			t.Fatal("the id of a message is another the second time")
		}
	})
	t.Run("AnIDOfAnotherPlaceIsRefused", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		other, _ := w.listen(t, url, "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+w.keys["other"].Reveal())
		}).next()
		w.happen(task.FeedSucceeded, eventIn(task.EventSucceeded))
		ahead, _ := w.listen(t, url, "").next()
		w.mu.Lock()
		w.feed.entries = nil // as of another database
		w.mu.Unlock()
		for _, id := range []string{other.id, ahead.id, "canary-7f3a", ahead.id + "x", "0"} {
			l := w.dial(t, url, "", lastID(id))
			var problem contract.Problem
			if err := json.NewDecoder(l.response.Body).Decode(&problem); err != nil || problem.Code != string(fault.InvalidCursor) {
				t.Fatalf("%q: %d %+v %v", id, l.response.StatusCode, problem, err)
			}
		}
	})
	t.Run("TellsOnlyWhatIsAskedFor", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		hello, _ := w.listen(t, url, "").next()
		add, failed := eventIn(task.EventSucceeded), eventIn(task.EventFailed)
		add.Kind = task.Add
		w.happen(task.FeedRetrying, eventIn(task.EventRetrying))
		w.happen(task.FeedFailed, failed)
		w.happen(task.FeedSucceeded, add)
		w.listen(t, url, "?type=memory_add&after="+hello.id).wantTold("event.succeeded", add)
		w.listen(t, url, "?type=memory_add,export&after="+hello.id).wantTold("event.succeeded", add)
		l := w.listen(t, url, "?status=FAILED,SUCCEEDED&after="+hello.id)
		l.wantTold("event.failed", failed)
		l.wantTold("event.succeeded", add)
		for _, query := range []string{"?type=webhook_delivery", "?type=x", "?status=PENDING", "?status=", "?after=a&after=b", "?x=1"} {
			if l := w.dial(t, url, query); l.response.StatusCode != 400 {
				t.Errorf("%s: %d", query, l.response.StatusCode)
			}
		}
	})
	t.Run("WhatIsGoneIsPassedOver", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		hello, _ := w.listen(t, url, "").next()
		gone, there := w.happen(task.FeedSucceeded, eventIn(task.EventSucceeded)), w.happen(task.FeedSucceeded, eventIn(task.EventSucceeded))
		w.mu.Lock()
		delete(w.events, gone.ID)
		w.mu.Unlock()
		w.listen(t, url, "?after="+hello.id).wantTold("event.succeeded", there)
	})
	t.Run("ASilentOneShowsThatItLives", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{Heartbeat: 10 * time.Millisecond})
		w.mu.Lock()
		w.feed.held = 90 * time.Second
		w.mu.Unlock()
		l := w.listen(t, url, "")
		_, _ = l.next()
		if beat, more := l.next(); !more || beat.id == "" || beat.data != "" || beat.comment != "held back for 90 s" {
			t.Fatalf("beat %+v", beat)
		}
	})
	t.Run("HeadIsAnsweredAtOnce", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		l := w.listen(t, url, "", func(r *http.Request) { r.Method = http.MethodHead })
		l.wantEnd()
		w.answered(t, "")
	})
	t.Run("ATroubleEndsIt", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{Heartbeat: 10 * time.Millisecond})
		l := w.listen(t, url, "")
		_, _ = l.next()
		w.mu.Lock()
		w.feed.broken = fault.New(fault.UnavailableNow)
		w.mu.Unlock()
		l.wantEnd()
		w.answered(t, "UNAVAILABLE")
	})
}

// answered waits until the stream's request has its log line with code.
func (w *world) answered(t *testing.T, code string) {
	t.Helper()
	for {
		select {
		case seen := <-w.seen:
			if seen.route != "/v1/events/stream" || seen.status != 200 {
				t.Fatalf("seen %+v", seen)
			}
		case <-time.After(streamPatience):
			t.Fatal("the request doesn't end")
		}
		if logs := w.logs.String(); code == "" || strings.Contains(logs, `"code":"`+code+`"`) {
			return
		}
	}
}

// streams is how many streams are open.
func (w *world) streams() int {
	w.server.following.mu.Lock()
	defer w.server.following.mu.Unlock()
	return w.server.following.all
}

func TestStreamBounds(t *testing.T) {
	t.Parallel()
	t.Run("OfAWorkspaceAndOfTheProcess", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{Max: 3, MaxPerWorkspace: 2, Heartbeat: 10 * time.Millisecond})
		other := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+w.keys["other"].Reveal()) }
		first := w.listen(t, url, "")
		w.listen(t, url, "")
		if l := w.dial(t, url, ""); l.response.StatusCode != 429 || l.response.Header.Get("Retry-After") == "" {
			t.Fatalf("the third of a workspace: %d", l.response.StatusCode)
		}
		w.listen(t, url, "", other)
		if l := w.dial(t, url, "", other); l.response.StatusCode != 503 {
			t.Fatalf("the fourth of the process: %d", l.response.StatusCode)
		}
		first.hangUp()
		for deadline := time.Now().Add(streamPatience); ; {
			if l := w.dial(t, url, ""); l.response.StatusCode == 200 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("a place isn't given back")
			}
		}
	})
	t.Run("TakesNoPlaceAmongTheWorking", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{}, func(c *Config) { c.MaxInFlight = 1 })
		l := w.listen(t, url, "")
		_, _ = l.next()
		w.do(t, "all", "GET", path(w.put("all", eventIn(task.EventPending)).ID), "").want(t, 200, "")
	})
	t.Run("EndsWhenTheServerStops", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{})
		l := w.listen(t, url, "")
		_, _ = l.next()
		w.server.drain()
		l.wantEnd()
	})
	t.Run("EndsOfAge", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{Age: 20 * time.Millisecond})
		w.listen(t, url, "").wantEnd()
	})
	t.Run("EndsCleanlyAfterASilence", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{Age: 300 * time.Millisecond, Send: 20 * time.Millisecond})
		w.listen(t, url, "").wantEnd()
	})
	t.Run("LeavesAReaderThatReadsNothing", func(t *testing.T) {
		t.Parallel()
		w, url := serveStreams(t, StreamConfig{Heartbeat: time.Nanosecond, Send: 100 * time.Millisecond})
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = conn.Write([]byte("GET /v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.keys["all"].Reveal() + "\r\n\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for _, open := range []int{1, 0} { // what is sent meanwhile fills the buffers of both sides
			for deadline := time.Now().Add(streamPatience); w.streams() != open; <-tick.C {
				if time.Now().After(deadline) {
					t.Fatalf("%d streams are open, want %d", w.streams(), open)
				}
			}
		}
	})
	t.Run("EndsWithItsKey", func(t *testing.T) {
		t.Parallel()
		for name, lose := range map[string]func(w *world){
			"Revoked": func(w *world) { delete(w.callers, w.keys["all"].ID()) },
			"Narrowed": func(w *world) {
				caller := w.callers[w.keys["all"].ID()]
				caller.Permissions = slices.DeleteFunc(slices.Clone(caller.Permissions), func(p access.Permission) bool { return p == access.OperationsRead })
				w.callers[w.keys["all"].ID()] = caller
			},
		} {
			w, url := serveStreams(t, StreamConfig{Renew: 20 * time.Millisecond})
			l := w.listen(t, url, "")
			for range 3 { // it outlives checks of a good key
				if _, more := l.next(); !more {
					t.Fatal("ended")
				}
			}
			w.mu.Lock()
			lose(w)
			w.mu.Unlock()
			l.wantEnd()
			if l := w.dial(t, url, ""); l.response.StatusCode != 401 && l.response.StatusCode != 403 {
				t.Errorf("%s: afterwards %d", name, l.response.StatusCode)
			}
		}
	})
}
