package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/internal/zones/zonestest"
)

// zonedNode is the process of a single node with its own time zone file.
type zonedNode struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // read it only after the process has ended
	url   string
	zones string
}

// startZoned starts a zonedNode. It is killed when ctx ends, if it still runs.
func startZoned(ctx context.Context, t *testing.T) *zonedNode {
	t.Helper()
	ports := claimqtest.TakePorts(t, 2)
	n := &zonedNode{url: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), zones: filepath.Join(t.TempDir(), "zones.zip")}
	zonestest.Write(t, n.zones, "2027a", zonestest.Always(0))
	n.cmd = claimq(ctx, "server", "--node-id", "n1", "--data-dir", t.TempDir(), "--bootstrap", "--drain-time", "0",
		"--http-addr", strings.TrimPrefix(n.url, "http://"), "--peer-addr", fmt.Sprintf("127.0.0.1:%d", ports[1]), "--zone-data-file", n.zones)
	n.cmd.Stderr = &n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the node", func() bool {
		status, _, err := ask(ctx, http.MethodGet, n.url+"/readyz", "", "")
		return err == nil && status == http.StatusOK
	})
	return n
}

// A changed time zone file is read again without a signal. The cluster's overview shows the new version, and a
// schedule's next run moves.
func TestServer_zonesAgain(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	n := startZoned(ctx, t)
	defer func() {
		stop()
		_ = n.cmd.Wait()
		if t.Failed() {
			t.Log(n.log.String())
		}
	}()
	body := `{"cron":"0 3 * * *","timezone":"` + zonestest.Zone + `","task":{"task_type":"night","params":1}}`
	if status, answer, err := ask(ctx, http.MethodPut, n.url+"/api/schedules/night", "", body); err != nil || status/100 != 2 || !strings.Contains(answer, "T03:00:00") {
		t.Fatalf("%d, %v: %s", status, err, answer)
	}
	told := func(version string) bool {
		var out, failures bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failures}
		if code := run(ctx, a, []string{"cluster", "status", "--endpoint", n.url}); code != term.ExitDone {
			t.Errorf("cluster status ends with %d: %s", code, failures.String())
		}
		_, answer, err := ask(ctx, http.MethodGet, n.url+"/api/cluster", "", "")
		return err == nil && strings.Contains(answer, `"version":"`+version+`"`) && strings.Contains(out.String(), "time zones: "+version)
	}
	testwait.Until(t, "the version of the start", func() bool { return told("2027a") })
	zonestest.Write(t, n.zones, "2027b", zonestest.Always(2*time.Hour))
	testwait.Until(t, "the version that the file has now", func() bool { return told("2027b") })
	testwait.Until(t, "the next run by the new clocks", func() bool {
		_, answer, err := ask(ctx, http.MethodGet, n.url+"/api/schedules/night", "", "")
		return err == nil && strings.Contains(answer, "T01:00:00")
	})
}

// A stop ends in time with a status and a log line that says why, even if a file of the node hangs.
func TestServer_stopsThoughAFileHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Patience)
	defer cancel()
	n := startZoned(ctx, t)
	if err := errors.Join(os.Remove(n.zones), syscall.Mkfifo(n.zones, 0o600), n.cmd.Process.Signal(syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	var hangs *os.File // reads of it end only when it is closed
	testwait.Until(t, "the node to read the file", func() (reads bool) {
		var err error
		hangs, err = os.OpenFile(n.zones, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	defer hangs.Close()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := n.cmd.Wait()
	if code := n.cmd.ProcessState.ExitCode(); code != cluster.ExitFatal || !strings.Contains(n.log.String(), "ending with the stop unfinished") {
		t.Errorf("it ended with %v:\n%s", err, n.log.String())
	}
}
