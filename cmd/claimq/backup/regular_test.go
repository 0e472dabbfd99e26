package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/testwait"
)

const (
	ourID   = "d705d565-0fa7-8b39-b33d-ec9907759181"
	otherID = "ffffffff-0fa7-8b39-b33d-ec9907759181"
)

// node is a Node whose state is empty.
type node struct {
	mu    sync.Mutex
	leads bool
	err   error
}

func (n *node) set(leads bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads, n.err = leads, err
}

func (n *node) IsLeader() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads
}

func (n *node) ClusterID() string { return ourID }

func (n *node) SaveBackup(context.Context, bool) (*fsm.Backup, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return nil, n.err
	}
	return fsm.NewBackup(fsm.New().Snapshot(), fsm.BackupInfo{ClusterID: ourID, CreatedAt: time.Now().UnixMilli()}), nil
}

func namesIn(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, strings.TrimPrefix(e.Name(), "claimq-"+ourID+"-"))
	}
	return all
}

func start(t *testing.T, c Config) (stop func()) {
	c.Logger, c.Registry = hclog.NewNullLogger(), prometheus.NewRegistry()
	return Start(c)
}

// A leader takes a backup each hour and keeps two. The next leader goes on where it stopped, and a follower takes
// none. Those of another cluster stay; one of a clock that was wrong counts as old.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		others := "claimq-" + otherID + "-19990101T000000Z-7.backup"
		ahead := "20990101T000000Z-0.backup"
		for _, name := range []string{others, "notes.txt", "claimq-" + ourID + "-" + ahead} {
			if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n := &node{}
		stop := start(t, Config{Node: n, Every: time.Hour, Folder: folder, Keep: 2})
		is := func(after time.Duration, want ...string) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			if diff := cmp.Diff(append(want, others, "notes.txt"), namesIn(t, folder)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
		is(time.Minute, ahead) // a follower
		n.set(true, nil)
		is(time.Minute, "20000101T000110Z-0.backup", ahead)
		is(30*time.Minute, "20000101T000110Z-0.backup", ahead)
		is(time.Hour, "20000101T000110Z-0.backup", "20000101T010110Z-0.backup")
		stop()
		stop = start(t, Config{Node: n, Every: time.Hour, Folder: folder, Keep: 2}) // another node
		is(20*time.Minute, "20000101T000110Z-0.backup", "20000101T010110Z-0.backup")
		is(20*time.Minute, "20000101T010110Z-0.backup", "20000101T020110Z-0.backup")
		stop()
	})
}

// Backups are ordered by the log: one of a clock that was an hour ahead is older than the next.
func TestRegular_ours(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := &Regular{Config: Config{Node: &node{}, Every: time.Hour}}
	want := []string{"20000101T020000Z-9.backup", "20000101T010000Z-10.backup", "20000101T030000Z-11.backup"}
	for _, name := range want {
		if err := os.WriteFile(filepath.Join(folder, "claimq-"+ourID+"-"+name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range r.ours(entries) {
		got = append(got, strings.TrimPrefix(b.name, "claimq-"+ourID+"-"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A backup that fails is tried again, is counted, and removes nothing. Its file does not stay.
func TestStart_fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		n := &node{leads: true, err: errors.New("no leader")}
		registry := prometheus.NewRegistry()
		stop := Start(Config{Node: n, Every: time.Hour, Folder: folder, Keep: 1, Logger: hclog.NewNullLogger(), Registry: registry})
		defer stop()
		<-time.After(29 * time.Minute)
		n.set(true, nil)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"20000101T003000Z-0.backup"}, namesIn(t, folder)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			m := f.GetMetric()[0]
			got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		delete(got, "claimq_backup_bytes")
		halfPast := time.Date(2000, 1, 1, 0, 30, 0, 0, time.UTC)
		want := map[string]float64{
			"claimq_backup_failures_total": 6, "claimq_backup_interval_seconds": 3600,
			"claimq_backup_last_success_timestamp_seconds": float64(halfPast.Unix()),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// The command gets each backup. If it fails or takes too long, the backup has no name and the command is ended with
// what it has started.
func TestStart_command(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, logged string }{
		"copies":   {`cat > "$0.copy" && echo "$CLAIMQ_BACKUP_NAME $CLAIMQ_BACKUP_BYTES" > "$0.told"`, ""},
		"fails":    {`echo no bucket >&2; exit 7`, "backup.command: exit status 7: no bucket"},
		"is stuck": {`sleep 600 & echo $! > "$0.pid"; wait`, "backup.command: it took over 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, script := t.TempDir(), filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			var log lockedBuffer
			stop := Start(Config{
				Node: &node{leads: true}, Every: time.Hour, Folder: folder, Keep: 1, Command: script, Timeout: time.Second,
				Logger: hclog.New(&hclog.LoggerOptions{Output: &log}), Registry: prometheus.NewRegistry(),
			})
			defer stop()
			if c.logged != "" {
				testwait.Until(t, "the failure", func() bool { return strings.Contains(log.text(), c.logged) })
				if left := namesIn(t, folder); left != nil {
					t.Errorf("the folder has %v", left)
				}
				return
			}
			testwait.Until(t, "a backup", func() bool { return strings.Contains(log.text(), "took a backup") })
			got := namesIn(t, folder)
			whole, err := os.ReadFile(filepath.Join(folder, "claimq-"+ourID+"-"+got[0]))
			if err != nil {
				t.Fatal(err)
			}
			if copied, err := os.ReadFile(script + ".copy"); err != nil || !bytes.Equal(copied, whole) {
				t.Errorf("copied %d of %d bytes, %v", len(copied), len(whole), err)
			}
			if told, err := os.ReadFile(script + ".told"); err != nil || !strings.HasPrefix(string(told), "claimq-"+ourID+"-"+got[0]+" ") {
				t.Errorf("told %q, %v", told, err)
			}
		})
	}
}

// A backup that is damaged on its way to the disk gets no name.
func TestWrite_damaged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p, err := Write(folder, "a", func(w io.Writer) (int64, error) {
		n, err := w.Write([]byte("half a backup"))
		return int64(n), err
	})
	if !errors.Is(err, fsm.ErrCorrupt) {
		t.Errorf("%+v, %v", p, err)
	}
	if left := namesIn(t, folder); left != nil {
		t.Errorf("the folder has %v", left)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
