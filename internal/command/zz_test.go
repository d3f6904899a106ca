package command

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestZZSpeed(t *testing.T) {
	var body []byte
	var err error
	body, err = SnapshotLine{Header: &SnapshotHeader{Version: 1, Workspace: uuid.New(), CreatedAt: time.Now()}}.AppendTo(body)
	if err != nil { t.Fatal(err) }
	u := "u"
	text := "a short fact about somebody who likes tea and lives in Lisbon since May"
	var foot SnapshotFooter
	id := uuid.UUID{}
	for len(body) < 60<<20 {
		foot.Memories++
		foot.History++
		n := foot.Memories
		id[0], id[1], id[2], id[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		now := time.Now().UTC()
		body, _ = SnapshotLine{Memory: &SnapshotMemory{ID: id, Event: uuid.New(), UserID: &u, Text: text, Version: 1, AcceptedAt: now, SaidAt: now, ValidFrom: now, CreatedAt: now, UpdatedAt: now, Metadata: []byte(`{"a":1,"b":[1,2,3]}`)}}.AppendTo(body)
		body, _ = SnapshotLine{History: &SnapshotHistory{ID: uuid.New(), MemoryID: id, Event: uuid.New(), Change: "ADD", Version: 1, NewText: &text, At: now}}.AppendTo(body)
	}
	body, _ = SnapshotLine{Footer: &foot}.AppendTo(body)
	began := time.Now()
	check := NewSnapshotCheck(time.Now().Add(time.Hour))
	err = SplitSnapshot(bytes.NewReader(body), func(part []byte) error {
		for _, raw := range SnapshotLines(part) {
			if _, err := check.Line(raw); err != nil { return err }
		}
		return nil
	})
	total, err2 := check.End()
	t.Log(len(body)>>20, "MiB", total, err, err2, time.Since(began))
}
