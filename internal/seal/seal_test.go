package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// encoded is a master key of one repeated byte as it is configured.
func encoded(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, keySize))
}

func ring(t testing.TB, text string) *Ring {
	t.Helper()
	r, err := ParseRing(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRing(t *testing.T) {
	t.Parallel()
	r := ring(t, " 2027-01:"+encoded(2)+" ,\n2026-01:"+encoded(1)+"\r\n")
	if r.Active() != "2027-01" || len(r.Names()) != 2 || !r.Has("2026-01") || r.Has("2025-01") {
		t.Errorf("active %q of %v", r.Active(), r.Names())
	}
	var many []string
	for i := range maxMasters + 1 {
		many = append(many, fmt.Sprintf("k%d:%s", i, encoded(1)))
	}
	for what, text := range map[string]string{
		"nothing":         "",
		"no id":           encoded(1),
		"an empty id":     ":" + encoded(1),
		"an id of spaces": "a b:" + encoded(1),
		"a long id":       strings.Repeat("k", maxName+1) + ":" + encoded(1),
		"no base64":       "k:open-sesame-open-sesame!",
		"a short key":     "k:" + base64.StdEncoding.EncodeToString(make([]byte, 16)),
		"an id twice":     "k:" + encoded(1) + ",k:" + encoded(2),
		"too many":        strings.Join(many, ","),
	} {
		_, err := ParseRing(text)
		if err == nil {
			t.Errorf("%s was taken", what)
			continue
		}
		if strings.Contains(err.Error(), encoded(1)) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: the error quotes the key: %v", what, err)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*Ring, Key, Wrapped, Place) {
		t.Helper()
		r := ring(t, "a:"+encoded(1))
		at := Place{uuid.New(), uuid.New(), "tasks.command", 0}
		key, wrapped, err := r.NewKey(uuid.New(), at.Workspace)
		if err != nil {
			t.Fatal(err)
		}
		return r, key, wrapped, at
	}

	t.Run("WhatWasSealedOpensInItsPlace", func(t *testing.T) {
		t.Parallel()
		r, key, wrapped, at := setup(t)
		for _, text := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("long "), 50_000)} {
			sealed := key.Seal(at, text)
			if len(sealed) != len(text)+Overhead || len(text) > 4 && bytes.Contains(sealed, text[:5]) {
				t.Fatalf("%d bytes were sealed to %d", len(text), len(sealed))
			}
			if id, ok := KeyOf(sealed); !ok || id != key.ID {
				t.Fatalf("sealed with %s", id)
			}
			again, err := r.Unwrap(key.ID, at.Workspace, wrapped)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := again.Open(at, sealed); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("opened %d bytes: %v", len(got), err)
			}
		}
	})

	t.Run("NothingOpensElsewhere", func(t *testing.T) {
		t.Parallel()
		_, key, _, at := setup(t)
		sealed := key.Seal(at, []byte("text"))
		for what, place := range map[string]Place{
			"workspace": {uuid.New(), at.Row, at.Column, at.Part},
			"row":       {at.Workspace, uuid.New(), at.Column, at.Part},
			"column":    {at.Workspace, at.Row, "plans.body", at.Part},
			"part":      {at.Workspace, at.Row, at.Column, 1},
		} {
			if _, err := key.Open(place, sealed); !errors.Is(err, ErrUnreadable) {
				t.Errorf("another %s: %v", what, err)
			}
		}
	})

	t.Run("NoChangedByteOpens", func(t *testing.T) {
		t.Parallel()
		_, key, _, at := setup(t)
		sealed := key.Seal(at, []byte("text"))
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			if _, err := key.Open(at, changed); !errors.Is(err, ErrUnreadable) {
				t.Errorf("byte %d was changed: %v", i, err)
			}
		}
		for n := range sealed {
			if _, err := key.Open(at, sealed[:n]); !errors.Is(err, ErrUnreadable) {
				t.Errorf("cut to %d bytes: %v", n, err)
			}
		}
	})

	t.Run("SealIsNeverTheSameAndSealSameIs", func(t *testing.T) {
		t.Parallel()
		_, key, _, at := setup(t)
		text := []byte("text")
		if bytes.Equal(key.Seal(at, text), key.Seal(at, text)) {
			t.Error("two seals are the same")
		}
		same := key.SealSame(at, text)
		if !bytes.Equal(same, key.SealSame(at, text)) || bytes.Equal(same, key.SealSame(at, []byte("test"))) {
			t.Error("SealSame is not a function of the text")
		}
		elsewhere := at
		elsewhere.Row = uuid.New()
		from, to := headSize, headSize+nonce
		if bytes.Equal(same[from:to], key.SealSame(elsewhere, text)[from:to]) {
			t.Error("a nonce is used in two places")
		}
		if got, err := key.Open(at, same); err != nil || !bytes.Equal(got, text) {
			t.Errorf("opened %q: %v", got, err)
		}
	})

	t.Run("AWrappedKeyIsThatOfItsIdWorkspaceAndMaster", func(t *testing.T) {
		t.Parallel()
		r, key, wrapped, at := setup(t)
		other := ring(t, "b:"+encoded(1))
		if _, err := other.Unwrap(key.ID, at.Workspace, wrapped); !errors.Is(err, ErrNoMaster) || !errors.Is(err, ErrUnreadable) {
			t.Errorf("without its master key: %v", err)
		}
		wrong := ring(t, "a:"+encoded(9))
		if _, err := wrong.Unwrap(key.ID, at.Workspace, wrapped); !errors.Is(err, ErrNoKey) || errors.Is(err, ErrNoMaster) {
			t.Errorf("with another master key of the id: %v", err)
		}
		if _, err := other.Unwrap(key.ID, at.Workspace, Wrapped{"b", wrapped.Key}); !errors.Is(err, ErrUnreadable) {
			t.Errorf("under another name: %v", err)
		}
		if _, err := r.Unwrap(uuid.New(), at.Workspace, wrapped); !errors.Is(err, ErrUnreadable) {
			t.Errorf("as another key: %v", err)
		}
		if _, err := r.Unwrap(key.ID, uuid.New(), wrapped); !errors.Is(err, ErrUnreadable) {
			t.Errorf("of another workspace: %v", err)
		}
	})

	t.Run("RewrapLeavesWhatIsSealedReadable", func(t *testing.T) {
		t.Parallel()
		_, key, wrapped, at := setup(t)
		sealed := key.Seal(at, []byte("text"))
		both := ring(t, "b:"+encoded(2)+",a:"+encoded(1))
		moved, err := both.Rewrap(key.ID, at.Workspace, wrapped)
		if err != nil || moved.Master != "b" {
			t.Fatalf("rewrapped under %q: %v", moved.Master, err)
		}
		again, err := ring(t, "b:"+encoded(2)).Unwrap(key.ID, at.Workspace, moved)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Open(at, sealed); err != nil || string(got) != "text" {
			t.Errorf("opened %q: %v", got, err)
		}
	})

	t.Run("NothingPrintsAKey", func(t *testing.T) {
		t.Parallel()
		r, key, _, _ := setup(t)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if got := fmt.Sprintf(verb+" "+verb, r, key); got != redacted+" "+redacted {
				t.Errorf("%s prints %s", verb, got)
			}
		}
		shown, err := json.Marshal(map[string]any{"ring": r})
		if err != nil || string(shown) != `{"ring":{}}` {
			t.Errorf("encoded as %s: %v", shown, err)
		}
	})

	t.Run("JSONIsNotSealed", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"", "{}", `{"messages":[]}`, strings.Repeat("{", 100), "\x00HF\x02" + strings.Repeat("x", 100), mark} {
			if id, ok := KeyOf([]byte(text)); ok {
				t.Errorf("%.10q is sealed with %s", text, id)
			}
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	at := time.Now()
	c := NewCache(2, func() time.Time { return at })
	a, b, d := uuid.New(), uuid.New(), uuid.New()
	has := func(id uuid.UUID) bool { _, ok := c.Get(id); return ok }
	c.Put(a, Key{ID: a}, time.Hour)
	c.Put(b, Key{ID: b}, time.Minute)
	if key, ok := c.Get(a); !ok || key.ID != a {
		t.Fatal("a key is not found")
	}
	c.Put(d, Key{ID: d}, time.Minute)
	if has(b) || !has(a) || !has(d) || c.Len() != 2 {
		t.Error("not the one that was used longest ago made room")
	}
	at = at.Add(time.Minute)
	if has(d) || !has(a) || c.Len() != 1 {
		t.Error("a key outlived its time")
	}
	c.Put(a, Key{ID: b}, time.Hour)
	if key, _ := c.Get(a); key.ID != b || c.Len() != 1 {
		t.Error("a key was not replaced")
	}
	c.Drop(a)
	c.Drop(a)
	if has(a) || c.Len() != 0 {
		t.Error("a dropped key is there")
	}
}

// BenchmarkSeal is one payload of 4 KB, sealed and opened.
func BenchmarkSeal(b *testing.B) {
	r := ring(b, "a:"+encoded(1))
	at := Place{uuid.New(), uuid.New(), "tasks.command", 0}
	key, _, err := r.NewKey(uuid.New(), at.Workspace)
	if err != nil {
		b.Fatal(err)
	}
	text := bytes.Repeat([]byte("four"), 1024)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := key.Open(at, key.Seal(at, text)); err != nil {
			b.Fatal(err)
		}
	}
}
