package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
)

func mem0File(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mem0Line(id uuid.UUID, user string) string {
	return fmt.Sprintf(`{"id":%q,"memory":"of %s","user_id":%q,"created_at":"2025-01-01T00:00:00Z"}`+"\n", id, user, user)
}

func TestConvertMem0(t *testing.T) {
	t.Parallel()
	t.Run("MakesASnapshotThatAnImportTakesAndAlwaysTheSame", func(t *testing.T) {
		t.Parallel()
		var text strings.Builder
		for i := range 3_000 {
			text.WriteString(mem0Line(uuid.New(), fmt.Sprint("user-", i%7)))
		}
		path := mem0File(t, text.String())
		var first []byte
		for range 2 {
			made, err := convertMem0(path, "")
			if err != nil {
				t.Fatal(err)
			}
			whole, err := io.ReadAll(made.file)
			if err != nil {
				t.Fatal(err)
			}
			if err := made.file.Close(); err != nil {
				t.Error(err)
			}
			if made.counts.Memories != 3_000 || made.counts.Users != 7 {
				t.Errorf("counts %+v", made.counts)
			}
			if first != nil && !bytes.Equal(first, whole) {
				t.Error("the same export is another snapshot")
			}
			first = whole
		}
		check := command.NewSnapshotCheck(time.Now())
		lines := bufio.NewScanner(bytes.NewReader(first))
		for n := 1; lines.Scan(); n++ {
			if _, err := check.Line(lines.Bytes()); err != nil {
				t.Fatalf("line %d: %v", n, err)
			}
		}
		if total, err := check.End(); total != 3_000 || err != nil {
			t.Errorf("%d memories, %v", total, err)
		}
	})
	t.Run("TellsOfWrongOnesByTheirPositions", func(t *testing.T) {
		t.Parallel()
		same := uuid.New()
		text := mem0Line(same, "a") + mem0Line(uuid.New(), "") + mem0Line(same, "c") + `{"id":"secret"}`
		_, err := convertMem0(mem0File(t, text), "")
		want := "memory 2: user_id, agent_id, app_id or run_id required\nmemory 4: id: a UUID\nmemory 3: id: the same as that of memory 1\nnothing was imported"
		if err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
		_, err = convertMem0(mem0File(t, strings.Repeat("7", 1)), "")
		if err == nil {
			t.Error("a number was taken")
		}
		_, err = convertMem0(mem0File(t, "["+strings.TrimSuffix(strings.Repeat(`{"id":1},`, 50), ",")+"]"), "")
		if err == nil || strings.Count(err.Error(), "\n") != maxComplaints || !strings.HasSuffix(err.Error(), "and 30 more; nothing was imported") {
			t.Errorf("%v", err)
		}
	})
	t.Run("RefusesMoreThanAnImportTakes", func(t *testing.T) {
		t.Parallel()
		path := mem0File(t, "")
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(command.MaxMem0 + 1); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := convertMem0(path, ""); err == nil || !strings.Contains(err.Error(), "larger than 256 MiB") {
			t.Errorf("%v", err)
		}
		if _, err := convertMem0(filepath.Join(t.TempDir(), "none"), ""); err == nil {
			t.Error("a missing file was read")
		}
	})
}
