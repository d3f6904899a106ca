package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// body mirrors the contract's add body for tests of this package.
type body struct {
	Messages     json.RawMessage   `json:"messages"`
	Content      *string           `json:"content"`
	UserID       *string           `json:"user_id"`
	AgentID      *string           `json:"agent_id"`
	RunID        *string           `json:"run_id"`
	AppID        *string           `json:"app_id"`
	Infer        *bool             `json:"infer"`
	Metadata     json.RawMessage   `json:"metadata"`
	EventDate    *string           `json:"event_date"`
	ExpiresAt    *string           `json:"expires_at"`
	Instructions *string           `json:"instructions"`
	Ordered      *bool             `json:"ordered"`
	Categories   []memory.Category `json:"categories"`
}

func read(raw string) (Add, error) {
	plain, err := ReadJSON([]byte(raw))
	if err != nil {
		return Add{}, err
	}
	var b body
	if err := jsonv2.Unmarshal(plain, &b, jsonv2.RejectUnknownMembers(true)); err != nil {
		return Add{}, fault.At(fault.InvalidRequest, "", "the contract's members")
	}
	return NewAdd(AddInput(b))
}

func mustRead(t *testing.T, raw string) Add {
	t.Helper()
	add, err := read(raw)
	if err != nil {
		t.Fatal(err)
	}
	return add
}

func TestNewAdd(t *testing.T) {
	t.Parallel()
	t.Run("FillsInDefaults", func(t *testing.T) {
		t.Parallel()
		add := mustRead(t, `{"content":" I like tea ","user_id":" u1 "}`)
		if !add.Infer || !add.Ordered || add.Metadata != nil || add.EventDate != nil || add.Instructions != "" {
			t.Fatalf("got %+v", add)
		}
		if add.Scope != (memory.Scope{UserID: "u1"}) || len(add.Messages) != 1 {
			t.Fatalf("got %+v", add)
		}
		if add.Messages[0] != (Message{Role: "user", Content: " I like tea "}) {
			t.Fatalf("the content was changed: %+v", add.Messages[0])
		}
	})
	t.Run("LeavesOutMessagesThatSayNothing", func(t *testing.T) {
		t.Parallel()
		add := mustRead(t, `{"user_id":"u","messages":[{"role":"assistant","content":""},{"role":"user","name":"Ann","content":"system"}]}`)
		if len(add.Messages) != 1 || add.Messages[0] != (Message{Role: "user", Name: "Ann", Content: "system"}) {
			t.Fatalf("got %+v", add.Messages)
		}
	})
	t.Run("KeepsMetadataAsWritten", func(t *testing.T) {
		t.Parallel()
		const written = `{"b": 1.50, "a": {"z":null,"y":[1e2]}}`
		add := mustRead(t, `{"user_id":"u","content":"x","metadata":`+written+`}`)
		if string(add.Metadata) != written {
			t.Fatalf("got %s", add.Metadata)
		}
	})
	t.Run("TakesTheEventDateAsAnInstant", func(t *testing.T) {
		t.Parallel()
		add := mustRead(t, `{"user_id":"u","content":"x","event_date":"2026-01-01T09:00:00.1234567+09:00"}`)
		if want := time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC); !add.EventDate.Equal(want) || add.EventDate.Location() != time.UTC {
			t.Fatalf("got %s", add.EventDate)
		}
	})
	t.Run("TakesTheLimits", func(t *testing.T) {
		t.Parallel()
		message := `{"role":"user","content":"x"}`
		mustRead(t, `{"user_id":"u","messages":[`+message+strings.Repeat(","+message, MaxMessages-1)+`]}`)
		mustRead(t, `{"content":"x","app_id":"`+strings.Repeat("界", MaxScope)+`"}`)
		mustRead(t, `{"content":"x","user_id":"u","instructions":"`+strings.Repeat("é", MaxInstructions)+`"}`)
	})
}

func TestNewAddRefuses(t *testing.T) {
	t.Parallel()
	message := `{"role":"user","content":"x"}`
	cases := []struct {
		name    string
		body    string
		code    fault.Code
		pointer string
	}{
		{"NothingSaid", `{"user_id":"u"}`, fault.InvalidRequest, "/messages"},
		{"SaidTwice", `{"user_id":"u","content":"x","messages":"y"}`, fault.InvalidRequest, "/content"},
		{"EmptyContent", `{"user_id":"u","content":""}`, fault.InvalidRequest, "/content"},
		{"WhiteSpace", `{"user_id":"u","content":" \n\t\u00a0\u3000"}`, fault.InvalidRequest, "/content"},
		{"ZeroWidth", `{"user_id":"u","content":"\u200b\u200d\ufeff\u2060"}`, fault.InvalidRequest, "/content"},
		{"Control", `{"user_id":"u","messages":"\u0001\u0085"}`, fault.InvalidRequest, "/messages"},
		{"Fillers", `{"user_id":"u","content":"\u3164\u115f\ufe0f\u034f\u2800"}`, fault.InvalidRequest, "/content"},
		{"OnlyBlankMessages", `{"user_id":"u","messages":[{"role":"user","content":" "}]}`, fault.InvalidRequest, "/messages"},
		{"NoMessages", `{"user_id":"u","messages":[]}`, fault.InvalidRequest, "/messages"},
		{"TooManyMessages", `{"user_id":"u","messages":[` + message + strings.Repeat(","+message, MaxMessages) + `]}`, fault.InvalidRequest, "/messages"},
		{"MessagesNumber", `{"user_id":"u","messages":7}`, fault.InvalidRequest, "/messages"},
		{"MessagesNull", `{"user_id":"u","messages":null}`, fault.InvalidRequest, "/messages"},
		{"MessagesObject", `{"user_id":"u","messages":` + message + `}`, fault.InvalidRequest, "/messages"},
		{"MessageString", `{"user_id":"u","messages":["` + canary + `"]}`, fault.InvalidRequest, "/messages/0"},
		{"MessageNull", `{"user_id":"u","messages":[null]}`, fault.InvalidRequest, "/messages/0"},
		{"UnknownMember", `{"user_id":"u","messages":[{"role":"user","content":"x","` + canary + `":1}]}`, fault.InvalidRequest, "/messages/0"},
		{"MemberInOtherCase", `{"user_id":"u","messages":[{"Role":"user","content":"x"}]}`, fault.InvalidRequest, "/messages/0"},
		{"NoRole", `{"user_id":"u","messages":[{"content":"x"}]}`, fault.InvalidRequest, "/messages/0/role"},
		{"BadRole", `{"user_id":"u","messages":[` + message + `,{"role":"` + canary + ` ","content":"x"}]}`, fault.InvalidRequest, "/messages/1/role"},
		{"LongRole", `{"user_id":"u","messages":[{"role":"` + strings.Repeat("r", 65) + `","content":"x"}]}`, fault.InvalidRequest, "/messages/0/role"},
		{"NoContent", `{"user_id":"u","messages":[{"role":"user"}]}`, fault.InvalidRequest, "/messages/0/content"},
		{"ContentNull", `{"user_id":"u","messages":[{"role":"user","content":null}]}`, fault.InvalidRequest, "/messages/0/content"},
		{"ContentParts", `{"user_id":"u","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, fault.InvalidRequest, "/messages/0/content"},
		{"BlankName", `{"user_id":"u","messages":[{"role":"user","name":" ","content":"x"}]}`, fault.InvalidRequest, "/messages/0/name"},
		{"NoScope", `{"content":"x"}`, fault.ScopeRequired, ""},
		{"BlankScope", `{"content":"x","user_id":" \u200b"}`, fault.InvalidRequest, "/user_id"},
		{"LongScope", `{"content":"x","run_id":"` + strings.Repeat("a", MaxScope+1) + `"}`, fault.InvalidRequest, "/run_id"},
		{"MetadataArray", `{"content":"x","user_id":"u","metadata":[]}`, fault.InvalidRequest, "/metadata"},
		{"MetadataNull", `{"content":"x","user_id":"u","metadata":null}`, fault.InvalidRequest, "/metadata"},
		{"NaiveDate", `{"content":"x","user_id":"u","event_date":"2026-01-01T00:00:00"}`, fault.InvalidRequest, "/event_date"},
		{"DateOnly", `{"content":"x","user_id":"u","event_date":"2026-01-01"}`, fault.InvalidRequest, "/event_date"},
		{"DateWithComma", `{"content":"x","user_id":"u","event_date":"2026-01-01T00:00:00,5Z"}`, fault.InvalidRequest, "/event_date"},
		{"YearZero", `{"content":"x","user_id":"u","event_date":"0001-01-01T00:00:00+01:00"}`, fault.InvalidRequest, "/event_date"},
		{"YearTenThousand", `{"content":"x","user_id":"u","event_date":"9999-12-31T23:59:59-01:00"}`, fault.InvalidRequest, "/event_date"},
		{"LongInstructions", `{"content":"x","user_id":"u","instructions":"` + strings.Repeat("é", MaxInstructions+1) + `"}`, fault.InvalidRequest, "/instructions"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := read(c.body)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != c.code || f.Pointer != c.pointer {
				t.Fatalf("got %v, want %s at %q", err, c.code, c.pointer)
			}
			if strings.Contains(err.Error(), canary) {
				t.Fatalf("the error quotes the caller: %v", err)
			}
		})
	}
}
