package command

import (
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

func printOf(t *testing.T, raw string) Fingerprint {
	t.Helper()
	print, err := mustRead(t, raw).Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return print
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	const base = `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`
	for name, raw := range map[string]string{
		"MemberOrder":      `{"event_date":"2026-01-01T00:00:00Z","metadata":{"y":"é","x":1},"content":"I like tea & <b>","agent_id":"a","user_id":"u"}`,
		"WhiteSpace":       "{ \"user_id\" :\t\"u\",\n\"agent_id\":\"a\",\"content\":\"I like tea & <b>\",\"metadata\":{ \"x\": 1,\"y\":\"é\" },\"event_date\":\"2026-01-01T00:00:00Z\" }",
		"Escapes":          `{"user_id":"\u0075","agent_id":"a","content":"I like tea \u0026 \u003cb>","metadata":{"x":1,"y":"\u00e9"},"event_date":"2026-01-01T00:00:00Z"}`,
		"ExplicitDefaults": `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z","infer":true,"ordered":true,"instructions":""}`,
		"BareMessages":     `{"user_id":"u","agent_id":"a","messages":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"SpelledMessages":  `{"user_id":"u","agent_id":"a","messages":[{"content":"I like tea & <b>","role":"user"}],"metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"TrimmedIDs":       `{"user_id":" u ","agent_id":"a\n","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"NumberForms":      `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1.0e0,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"OtherOffset":      `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T09:00:00+09:00"}`,
	} {
		t.Run("IsTheSameWithOther"+name, func(t *testing.T) {
			t.Parallel()
			if printOf(t, raw) != printOf(t, base) {
				t.Fatal("the fingerprint differs")
			}
		})
	}
	number := func(n string) string { return `{"user_id":"u","content":"x","metadata":{"n":` + n + `}}` }
	for name, pair := range map[string][2]string{
		"Fractions":          {"0.12345678901234567890", "0.12345678901234567891"},
		"LargeFractions":     {"9007199254740992.5", "9007199254740993.5"},
		"TinyNumbers":        {"1.00000000000000001e-300", "1e-300"},
		"NumbersAndText":     {"1", `"1"`},
		"NumbersAndFormText": {"1", `"n1e0"`},
	} {
		t.Run("TellsApart"+name, func(t *testing.T) {
			t.Parallel()
			if printOf(t, number(pair[0])) == printOf(t, number(pair[1])) {
				t.Fatal("two values have one fingerprint")
			}
		})
	}
	t.Run("OfChangesTellsNumbersApart", func(t *testing.T) {
		t.Parallel()
		prints := map[Fingerprint]bool{}
		for _, n := range []string{"0.12345678901234567890", "0.12345678901234567891", "0.1234567890123456789"} {
			change := Change{Metadata: []byte(`{"n":` + n + `}`)}
			one, err := change.Fingerprint()
			if err != nil {
				t.Fatal(err)
			}
			many, err := Batch{Changes: []Change{change}}.Fingerprint()
			if err != nil || string(change.Metadata) != `{"n":`+n+`}` {
				t.Fatalf("%v, the change was changed: %s", err, change.Metadata)
			}
			prints[one], prints[many] = true, true
		}
		if len(prints) != 4 {
			t.Fatalf("two values of a change and of a batch make %d fingerprints", len(prints))
		}
	})
	for name, raw := range map[string]string{
		"Content":       `{"user_id":"u","agent_id":"a","content":"I like tea & <b> ","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"Normalisation": `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"e\u0301"},"event_date":"2026-01-01T00:00:00Z"}`,
		"Scope":         `{"user_id":"a","agent_id":"u","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"NoAgent":       `{"user_id":"u","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"Role":          `{"user_id":"u","agent_id":"a","messages":[{"content":"I like tea & <b>","role":"assistant"}],"metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"Infer":         `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z","infer":false}`,
		"Ordered":       `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z","ordered":false}`,
		"Metadata":      `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":"1","y":"é"},"event_date":"2026-01-01T00:00:00Z"}`,
		"EventDate":     `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"}}`,
		"Instructions":  `{"user_id":"u","agent_id":"a","content":"I like tea & <b>","metadata":{"x":1,"y":"é"},"event_date":"2026-01-01T00:00:00Z","instructions":"i"}`,
	} {
		t.Run("DiffersWithOther"+name, func(t *testing.T) {
			t.Parallel()
			if printOf(t, raw) == printOf(t, base) {
				t.Fatal("the fingerprint is the same")
			}
		})
	}
	t.Run("DependsOnTheOrderOfMessages", func(t *testing.T) {
		t.Parallel()
		a := `{"user_id":"u","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`
		b := `{"user_id":"u","messages":[{"role":"user","content":"b"},{"role":"user","content":"a"}]}`
		if printOf(t, a) == printOf(t, b) {
			t.Fatal("the fingerprint is the same")
		}
	})
	t.Run("OfARetryDependsOnTheEvent", func(t *testing.T) {
		t.Parallel()
		event := uuid.New()
		first, again, other := RetryFingerprint(event), RetryFingerprint(event), RetryFingerprint(uuid.New())
		if first != again || first == other {
			t.Fatal("the retry's fingerprint doesn't follow its event")
		}
	})
	t.Run("IsStableAcrossReleases", func(t *testing.T) {
		t.Parallel()
		const want = "6836ea5339584dd143c9f9174b1a8b2e670dde88444d83518db5a794eb8a3487"
		if got := printOf(t, base); fmtHex(got) != want {
			t.Fatalf("got %s: raise FingerprintVersion if this is meant", fmtHex(got))
		}
	})
}

func TestCodec(t *testing.T) {
	t.Parallel()
	add := mustRead(t, `{"user_id":"u","messages":[{"role":"user","name":"Ann","content":"a <b> & \u2028"}],"metadata":{"b":1.50,"a":null},"event_date":"2026-01-01T00:00:00.000001Z","instructions":"i","infer":true,"ordered":false}`)
	payload, err := add.Encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("ComesBackAsItWas", func(t *testing.T) {
		t.Parallel()
		again, err := Decode(Format, payload)
		if err != nil {
			t.Fatal(err)
		}
		first, second := mustPrint(t, add), mustPrint(t, again)
		if first != second || string(again.Metadata) != string(add.Metadata) || again.Messages[0] != add.Messages[0] {
			t.Fatalf("got %+v", again)
		}
	})
	for name, bad := range map[string]string{
		"NotJSON":       "x",
		"Truncated":     string(payload[:len(payload)-1]),
		"TrailingData":  string(payload) + "{}",
		"UnknownMember": `{"scope":{"user_id":"u"},"messages":[{"role":"user","content":"x"}],"extra":1}`,
		"NoMessages":    `{"scope":{"user_id":"u"},"messages":[]}`,
		"NoScope":       `{"scope":{},"messages":[{"role":"user","content":"x"}]}`,
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			t.Parallel()
			if _, err := Decode(Format, []byte(bad)); !isUnreadable(err) {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("RefusesOtherFormats", func(t *testing.T) {
		t.Parallel()
		if _, err := Decode(Format+1, payload); !isUnreadable(err) {
			t.Fatalf("got %v", err)
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"user_id":"u","content":"x"}`,
		`{"user_id":"u","messages":[{"role":"user","content":"x","name":"n"}],"metadata":{"a":[1,2.5e3,null]},"infer":false}`,
		`{"user_id":"u","messages":"\ud83d\ude00","event_date":"2026-01-01T00:00:00+01:00","instructions":"i"}`,
		`{"user_id":"u","content":"x","content":"y"}`, `{"content":"\u0000"}`, `[9007199254740993]`, `{"a":1e999}`, "\xff", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		add, err := read(raw)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.InvalidBody && code != fault.InvalidRequest && code != fault.ScopeRequired {
				t.Fatalf("a refusal must be one of three codes, not %s", code)
			}
			return
		}
		print := mustPrint(t, add)
		payload, err := add.Encode()
		if err != nil {
			t.Fatal("a valid command must encode")
		}
		again, err := Decode(Format, payload)
		if err != nil {
			t.Fatal("an encoded command must decode")
		}
		if mustPrint(t, again) != print {
			t.Fatal("the fingerprint must survive storing")
		}
	})
}
