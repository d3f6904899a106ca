package localdev_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

func TestHolder(t *testing.T) {
	t.Parallel()

	t.Run("IsKnownByItsLockAndNotByANumber", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		_, err := localdev.Holder(dir)
		require.ErrorIs(t, err, localdev.ErrNotHeld)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600))
		_, err = localdev.Holder(dir)
		require.ErrorIs(t, err, localdev.ErrNotHeld)
		require.NoError(t, localdev.Released(t.Context(), dir))

		release, err := localdev.LockDir(dir)
		require.NoError(t, err)
		holder, err := localdev.Holder(dir)
		require.NoError(t, err)
		require.Equal(t, os.Getpid(), holder.Pid)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, localdev.Released(ended, dir), context.Canceled)
		waited := make(chan error, 1)
		go func() { waited <- localdev.Released(t.Context(), dir) }()
		require.NoError(t, release())
		require.NoError(t, <-waited)
		_, err = localdev.Holder(dir)
		require.ErrorIs(t, err, localdev.ErrNotHeld)
	})

	t.Run("IsNoOtherProcessOfThatNumber", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		release, err := localdev.LockDir(dir)
		require.NoError(t, err)
		defer func() { require.NoError(t, release()) }()
		// What began at another time is not the holder, though it has its number.
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte(strconv.Itoa(os.Getpid())+" 1\n"), 0o600))
		_, err = localdev.Holder(dir)
		require.ErrorContains(t, err, "changes all the time")
	})

	t.Run("WhoLooksKeepsNobodyOut", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		stop := make(chan struct{})
		var looking sync.WaitGroup
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = localdev.Holder(dir) // held or not: it is the look that counts
				}
			}
		})
		for range 20 {
			release, err := localdev.LockDir(dir)
			require.NoError(t, err)
			require.NoError(t, release())
		}
		close(stop)
		looking.Wait()
	})
}

func TestRotatedLog(t *testing.T) {
	t.Parallel()

	t.Run("KeepsItsBoundAndSomeOlderFiles", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "x.log")
		line := strings.Repeat("x", 99) + "\n"
		for range 2 { // it goes on where it stopped
			log, err := localdev.OpenRotatedLog(path, 1000, 2)
			require.NoError(t, err)
			for range 25 {
				_, err := log.Write([]byte(line))
				require.NoError(t, err)
			}
			require.NoError(t, log.Close())
		}
		files, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Equal(t, []string{path, path + ".1", path + ".2"}, files)
		for i, want := range []int64{1000, 1000, 1000} {
			info, err := os.Stat(files[i])
			require.NoError(t, err)
			require.Equal(t, want, info.Size(), files[i])
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	})

	t.Run("ShortensWhatAnotherProcessWrites", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "y.log")
		require.NoError(t, localdev.ShortenLog(path, 10))
		writer, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		defer writer.Close()
		_, err = writer.WriteString("0123456789")
		require.NoError(t, err)
		require.NoError(t, localdev.ShortenLog(path, 10))
		_, err = writer.WriteString("abc")
		require.NoError(t, err)
		require.NoError(t, localdev.ShortenLog(path, 10))
		_, err = writer.WriteString("new")
		require.NoError(t, err)
		for name, want := range map[string]string{path: "new", path + ".1": "3456789abc"} {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, want, string(text))
		}
	})
}
