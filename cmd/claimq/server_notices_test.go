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

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// A server tells its service manager when it is ready, when it reads its keys again and when it stops.
func TestServer_Notices(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	ports := claimqtest.TakePorts(t, 2)
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
	if got := claimqtest.NextNotice(t, manager); got != "READY=1\nSTATUS=ready" {
		t.Fatalf("first it told %q", got)
	}
	// It really is ready: a submit needs no second try.
	a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
	if code := run(t.Context(), a, []string{"submit", "mail", "{}", "--endpoint", "http://" + addr}); code != term.ExitDone {
		t.Errorf("a submit once it is ready ends with %d", code)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if first, second := claimqtest.NextNotice(t, manager), claimqtest.NextNotice(t, manager); first != "RELOADING=1" || second != "READY=1" {
		t.Errorf("at SIGHUP it told %q, %q", first, second)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := claimqtest.NextNotice(t, manager); got != "STOPPING=1" {
		t.Errorf("at SIGTERM it told %q", got)
	}
	ended = true
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
