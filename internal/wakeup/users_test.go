package wakeup_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
	natsconfig "github.com/holdfast-memory/holdfast/nats"
)

// logs is what a client has logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// as is a client of a process at a server with TLS and nkeys, and its log.
func as(t *testing.T, n *testkit.SecureNATS, process string, change func(*wakeup.Config)) (*wakeup.Client, *logs) {
	t.Helper()
	log := &logs{}
	cfg := wakeup.Config{
		URL: n.URL(), Name: "holdfast-" + process, Log: zerolog.New(log),
		Link: wakeup.Link{NkeyFile: n.Seed(process), Process: process, CAFile: n.CA()},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := wakeup.Connect(bounded(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c, log
}

func TestUsers(t *testing.T) {
	t.Parallel()

	t.Run("EachCanDoItsWork", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewSecureNATS(t, nil)
		repair, repairLog := as(t, n, "repair", nil)
		require.True(t, ensure(t, repair), "repair makes stream and consumers")
		api, apiLog := as(t, n, "api", nil)
		worker, workerLog := as(t, n, "worker", nil)
		doctor, doctorLog := as(t, n, "doctor", nil)
		require.False(t, ensure(t, api))
		require.False(t, ensure(t, worker))

		workspace, task := uuid.New(), uuid.New()
		woken, cancel, err := api.Subscribe(workspace, task)
		require.NoError(t, err)
		defer cancel()
		require.NoError(t, api.Publish(t.Context(), hint(1)))
		require.NoError(t, worker.Publish(t.Context(), hint(1)))
		rebuilt := hint(1)
		rebuilt.Class = wakeup.Bulk
		require.NoError(t, repair.Publish(t.Context(), rebuilt))
		for class, want := range map[string]uint64{wakeup.Interactive: 2, wakeup.Bulk: 1} {
			for _, c := range []*wakeup.Client{repair, doctor} {
				require.Eventually(t, func() bool { // a consumer counts what was stored a moment later
					waiting, err := c.Waiting(t.Context(), class)
					return err == nil && waiting == want
				}, time.Minute, 10*time.Millisecond, "%d wait for %s", want, class)
			}
		}
		con := consumer(t, worker)
		again, err := con.Fetch(t.Context(), wakeup.Interactive, 1)
		require.NoError(t, err)
		require.Len(t, again, 1)
		require.NoError(t, again[0].InProgress())
		require.NoError(t, again[0].Nak(0))
		fetchUntil(t, con, wakeup.Interactive, 2) // the one that was given back among them
		fetchUntil(t, con, wakeup.Bulk, 1)
		for _, from := range []*wakeup.Client{worker, repair, api} { // api cancels, repair gives up
			require.NoError(t, from.Notify(t.Context(), workspace, task))
			requireEvent(t, woken, "no notice has come")
		}
		deviations, err := doctor.Deviations(t.Context())
		require.NoError(t, err)
		require.Empty(t, deviations)
		require.False(t, doctor.CertificateEnds().IsZero())
		for _, log := range []*logs{repairLog, apiLog, workerLog, doctorLog} {
			require.NotContains(t, log.String(), "error", "the server has refused something")
		}
	})

	t.Run("WhoMayNotMakeTheStreamIsToldSoAtOnceAndWaitsForRepair", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewSecureNATS(t, nil)
		api, log := as(t, n, "api", nil)
		_, err := api.EnsureTopology(bounded(t))
		require.ErrorIs(t, err, wakeup.ErrRefused)
		require.ErrorIs(t, api.Healthy(), wakeup.ErrRefused)
		_, err = api.EnsureTopology(bounded(t)) // asks no second time
		require.ErrorIs(t, err, wakeup.ErrRefused)
		require.Equal(t, 1, strings.Count(log.String(), "STREAM.CREATE"))
		repair, _ := as(t, n, "repair", nil)
		ensure(t, repair)
		ensure(t, api)
		require.NoError(t, api.Healthy())
	})

	t.Run("OperatorMendsTheStream", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewSecureNATS(t, nil)
		repair, _ := as(t, n, "repair", nil)
		ensure(t, repair)
		js := n.JetStreamAs(t, "operator", "_INBOX") // as the nats command line does
		stream, err := js.Stream(bounded(t), "WAKE")
		require.NoError(t, err)
		require.NoError(t, stream.Purge(bounded(t)))
		require.NoError(t, js.DeleteStream(bounded(t), "WAKE"))
		require.True(t, ensure(t, repair))
	})

	t.Run("EachIsRefusedWhatItDoesNotNeed", func(t *testing.T) {
		t.Parallel()
		n := testkit.NewSecureNATS(t, nil)
		for _, user := range natsconfig.Users() {
			p := probe(t, n, user.Name)
			for subject, allowed := range publishers() {
				require.Equal(t, contains(allowed, user.Name), p.allowed("publish", subject), "%s publishes %s", user.Name, subject)
			}
			for subject, allowed := range listeners() {
				require.Equal(t, contains(allowed, user.Name), p.allowed("subscribe", subject), "%s subscribes %s", user.Name, subject)
			}
		}
	})
}

// publishers is who may send what: nobody but repair makes the stream, nobody but the operator changes or removes it,
// only workers pull, and nobody answers in the server's place.
func publishers() map[string]string {
	const js = "$JS.API."
	return map[string]string{
		"wake.interactive":                         "api worker repair",
		"wake.bulk":                                "api worker repair",
		"wake.other":                               "",
		"done.workspace.task":                      "api worker repair",
		"done.>":                                   "",
		js + "STREAM.INFO.WAKE":                    "api worker repair doctor operator",
		js + "CONSUMER.INFO.WAKE.interactive":      "api worker repair doctor operator",
		js + "CONSUMER.INFO.WAKE.other":            "operator",
		js + "CONSUMER.MSG.NEXT.WAKE.interactive":  "worker operator",
		js + "CONSUMER.MSG.NEXT.WAKE.bulk":         "worker operator",
		js + "CONSUMER.MSG.NEXT.WAKE.other":        "operator",
		js + "CONSUMER.MSG.NEXT.OTHER.bulk":        "operator",
		"$JS.ACK.WAKE.interactive.1.1.1.1.0":       "worker operator",
		"$JS.ACK.WAKE.other.1.1.1.1.0":             "operator",
		js + "STREAM.CREATE.WAKE":                  "repair operator",
		js + "STREAM.CREATE.OTHER":                 "operator",
		js + "CONSUMER.CREATE.WAKE.bulk.wake.bulk": "repair operator",
		js + "CONSUMER.CREATE.WAKE.spy.wake.bulk":  "operator",
		js + "CONSUMER.CREATE.WAKE.spy":            "operator",
		js + "CONSUMER.CREATE.WAKE":                "operator",
		js + "CONSUMER.DURABLE.CREATE.WAKE.spy":    "operator",
		js + "STREAM.UPDATE.WAKE":                  "operator",
		js + "STREAM.DELETE.WAKE":                  "operator",
		js + "STREAM.PURGE.WAKE":                   "operator",
		js + "STREAM.MSG.GET.WAKE":                 "operator",
		js + "STREAM.MSG.DELETE.WAKE":              "operator",
		js + "STREAM.SNAPSHOT.WAKE":                "operator",
		js + "STREAM.RESTORE.WAKE":                 "operator",
		js + "STREAM.LEADER.STEPDOWN.WAKE":         "operator",
		js + "DIRECT.GET.WAKE":                     "operator",
		js + "STREAM.NAMES":                        "operator",
		js + "STREAM.LIST":                         "operator",
		js + "CONSUMER.LIST.WAKE":                  "operator",
		js + "CONSUMER.DELETE.WAKE.interactive":    "operator",
		js + "CONSUMER.PAUSE.WAKE.interactive":     "operator",
		js + "INFO":                                "operator",
		"$SYS.REQ.SERVER.PING":                     "",
		natsconfig.Inbox("api") + ".answer":        "",
		natsconfig.Inbox("worker") + ".answer":     "",
		"_INBOX.answer":                            "",
	}
}

func listeners() map[string]string {
	return map[string]string{
		">":                               "",
		"wake.>":                          "",
		"wake.interactive":                "",
		"done.*.*":                        "api operator",
		"done.>":                          "",
		"_INBOX.>":                        "operator",
		natsconfig.Inbox("api") + ".>":    "api",
		natsconfig.Inbox("worker") + ".>": "worker",
		natsconfig.Inbox("repair") + ".>": "repair",
		natsconfig.Inbox("doctor") + ".>": "doctor",
		"*.>":                             "",
		"$JS.API.>":                       "",
		"$JS.ACK.>":                       "",
		"$JS.EVENT.>":                     "operator",
		"$SYS.>":                          "",
	}
}

func contains(names, name string) bool {
	for _, n := range strings.Fields(names) {
		if n == name {
			return true
		}
	}
	return false
}

// prober finds out what the server refuses a user. The server tells a refusal in the order of what was asked, and an
// allowed thing not at all, so that something that is always refused comes after each.
type prober struct {
	t       *testing.T
	nc      *nats.Conn
	refused chan string
}

func probe(t *testing.T, n *testkit.SecureNATS, user string) *prober {
	t.Helper()
	p := &prober{t: t, refused: make(chan string, 16)}
	p.nc = n.As(t, user, natsconfig.Inbox(user), func(err error) {
		if strings.Contains(err.Error(), "ermissions") { // not the answer of an API to a request without a body
			p.refused <- err.Error()
		}
	})
	return p
}

func (p *prober) allowed(what, subject string) bool {
	p.t.Helper()
	const end = "never.allowed"
	if what == "publish" {
		require.NoError(p.t, p.nc.Publish(subject, nil))
	} else {
		_, err := p.nc.SubscribeSync(subject)
		require.NoError(p.t, err)
	}
	require.NoError(p.t, p.nc.Publish(end, nil))
	allowed := true
	for {
		select {
		case text := <-p.refused:
			if strings.Contains(text, end) {
				return allowed
			}
			allowed = false
		case <-bounded(p.t).Done():
			require.Fail(p.t, "the server has refused nothing", "%s %s", what, subject)
		}
	}
}
