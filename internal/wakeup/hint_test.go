package wakeup

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

const (
	taskText      = "0190a5c4-7b1e-7c3d-8f00-000000000001"
	workspaceText = "0190a5c4-7b1e-7c3d-8f00-000000000002"
	goodBody      = `{"task":"` + taskText + `","workspace":"` + workspaceText + `","seq":3}`
)

func TestHint(t *testing.T) {
	t.Parallel()

	t.Run("ComesBackAsItWentIn", func(t *testing.T) {
		t.Parallel()
		in := Hint{
			TaskID: uuid.MustParse(taskText), WorkspaceID: uuid.MustParse(workspaceText), HintSeq: 1 << 62, Class: Bulk,
			Trace: map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1"},
		}
		msg, err := in.encode()
		require.NoError(t, err)
		require.Equal(t, "wake.bulk", msg.Subject)
		require.Less(t, len(msg.Data), 160)
		out, err := decodeHint(msg.Subject, msg.Header, msg.Data)
		require.NoError(t, err)
		require.Equal(t, in, out)
	})

	t.Run("CarriesNoOtherTraceKeysAndNoUnsafeValues", func(t *testing.T) {
		t.Parallel()
		in := Hint{TaskID: uuid.New(), WorkspaceID: uuid.New(), HintSeq: 1, Class: Interactive, Trace: map[string]string{
			"baggage": "user=secret", "traceparent": "a\r\nNats-Msg-Id: x", "tracestate": strings.Repeat("x", 513),
		}}
		msg, err := in.encode()
		require.NoError(t, err)
		require.Empty(t, msg.Header)
	})

	t.Run("ThatNobodyCouldReadIsNotSent", func(t *testing.T) {
		t.Parallel()
		good := Hint{TaskID: uuid.New(), WorkspaceID: uuid.New(), HintSeq: 1, Class: Interactive}
		for _, spoil := range []func(*Hint){
			func(h *Hint) { h.TaskID = uuid.Nil },
			func(h *Hint) { h.WorkspaceID = uuid.Nil },
			func(h *Hint) { h.HintSeq = 0 },
			func(h *Hint) { h.Class = "urgent" },
		} {
			bad := good
			spoil(&bad)
			_, err := bad.encode()
			require.ErrorIs(t, err, errHint)
		}
	})

	for name, body := range map[string]string{
		"Empty":         ``,
		"NotAnObject":   `[]`,
		"Null":          `null`,
		"UnknownMember": strings.Replace(goodBody, `{`, `{"x":1,`, 1),
		"TwiceAMember":  strings.Replace(goodBody, `{`, `{"seq":4,`, 1),
		"TrailingData":  goodBody + `{}`,
		"OtherCase":     strings.Replace(goodBody, `"task"`, `"Task"`, 1),
		"BracedID":      strings.Replace(goodBody, taskText, `{`+taskText+`}`, 1),
		"UpperCaseID":   strings.Replace(goodBody, taskText, strings.ToUpper(taskText), 1),
		"NilID":         strings.Replace(goodBody, taskText, uuid.Nil.String(), 1),
		"SeqZero":       strings.Replace(goodBody, `:3`, `:0`, 1),
		"SeqText":       strings.Replace(goodBody, `:3`, `:"3"`, 1),
		"SeqFraction":   strings.Replace(goodBody, `:3`, `:3.5`, 1),
		"SeqTooLarge":   strings.Replace(goodBody, `:3`, `:9223372036854775808`, 1),
		"TooLong":       goodBody + strings.Repeat(" ", maxHintBytes),
		"BadUTF8":       strings.Replace(goodBody, taskText, "\xff", 1),
	} {
		t.Run("Refused"+name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeHint("wake.bulk", nil, []byte(body))
			require.ErrorIs(t, err, errHint)
		})
	}

	t.Run("OfAnotherSubjectIsRefused", func(t *testing.T) {
		t.Parallel()
		_, err := decodeHint("wake.bulk", nil, []byte(goodBody))
		require.NoError(t, err)
		for _, subject := range []string{"", "wake.", "wake.urgent", "wake.bulk.x", "bulk"} {
			_, err := decodeHint(subject, nil, []byte(goodBody))
			require.ErrorIs(t, err, errHint, subject)
		}
	})
}

// FuzzDecodeHint holds that what is decoded is within bounds and is the same after another trip.
func FuzzDecodeHint(f *testing.F) {
	f.Add("wake.bulk", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", []byte(goodBody))
	f.Add("wake.interactive", "\r\n", []byte(`{"task":null}`))
	f.Fuzz(func(t *testing.T, subject, trace string, body []byte) {
		h, err := decodeHint(subject, nats.Header{traceParentKey: {trace}}, body)
		if err != nil {
			require.ErrorIs(t, err, errHint)
			return
		}
		msg, err := h.encode()
		require.NoError(t, err)
		again, err := decodeHint(msg.Subject, msg.Header, msg.Data)
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}
