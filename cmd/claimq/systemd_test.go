package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// nextNotice returns what the server tells the service manager next.
func nextNotice(t *testing.T, manager *net.UnixConn) string {
	t.Helper()
	if err := manager.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	state := make([]byte, 4096)
	n, err := manager.Read(state)
	if err != nil {
		t.Fatalf("no notice: %v", err)
	}
	return string(state[:n])
}

// A server tells the service manager that started it when it is ready, when it
// reads its keys anew and when it stops.
func TestServer_Notices(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	ports := takePorts(t, 2)
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	cmd := claimq(context.Background(), "server", "--node-id", "n1", "--data-dir", t.TempDir(), "--bootstrap",
		"--http-addr", addr, "--peer-addr", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	if got := nextNotice(t, manager); got != "READY=1\nSTATUS=ready" {
		t.Fatalf("first it told %q", got)
	}
	// It told the truth: a submit needs no second try.
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	if code := run(t.Context(), a, []string{"submit", "mail", "{}", "--endpoint", "http://" + addr}); code != exitDone {
		t.Errorf("a submit once it is ready ends with %d", code)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if first, second := nextNotice(t, manager), nextNotice(t, manager); first != "RELOADING=1" || second != "READY=1" {
		t.Errorf("at SIGHUP it told %q, %q", first, second)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := nextNotice(t, manager); got != "STOPPING=1" {
		t.Errorf("at SIGTERM it told %q", got)
	}
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A node that finds no others counts as started after a while, or whoever starts
// several one after the other would wait for ever.
func TestNotices_Late(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	n := newNotices(&app{environ: []string{"NOTIFY_SOCKET=" + socket}}, hclog.NewNullLogger())
	defer n.stop()
	n.reloading(func() {}) // not yet told: or it would be taken for started
	n.late.Reset(0)
	if got := nextNotice(t, manager); !strings.HasPrefix(got, "READY=1\nSTATUS=not ready yet") {
		t.Errorf("first it told %q", got)
	}
	n.await(func() error { return nil })
	if got := nextNotice(t, manager); got != "STATUS=ready" {
		t.Errorf("then it told %q", got)
	}
}
