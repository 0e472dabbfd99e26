package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/cmd/claimq/top"
	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/internal/testwait"
)

// runTop runs claimq top and returns its output.
func runTop(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, failures bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failures}
	code = run(ctx, a, append([]string{"top"}, args...))
	return out.String(), failures.String(), code
}

// top shows a busy real node: its leader, types, workers and rates.
func TestTop(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	claimqOf := func(args ...string) string {
		t.Helper()
		var out, failures bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failures}
		if code := run(t.Context(), a, append(args, "--endpoint", d.url(0))); code != 0 {
			t.Errorf("claimq %v: exit code %d: %s", args, code, failures.String())
		}
		return out.String()
	}
	claimqOf("submit", "mail", "{}")
	claimqOf("submit", "mail", "{}")
	claimqOf("submit", "sms", "{}")
	claimqOf("claim", "--worker", "w1", "--type", "mail", "--lease", "1h")
	claimqOf("type", "set", "sms", "--pause")

	// Tasks are submitted and done between the looks.
	working, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for working.Err() == nil {
			claimqOf("submit", "load", "{}")
		}
	})
	defer wg.Wait()
	defer stop()

	line, failures, code := runTop(t.Context(), "--output", "json", "--once", "--type", "mail", "--type", "s*", "--endpoint", d.url(0))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, failures)
	}
	var v top.View
	if err := json.Unmarshal([]byte(line), &v); err != nil || strings.Count(line, "\n") != 1 {
		t.Fatalf("%v: %s", err, line)
	}
	if v.Leader != "n1" || v.NodesUp != 1 || v.NoLeaderMS != 0 || len(v.Problems) > 0 || v.Counts["claimed"] != 1 {
		t.Errorf("the cluster: %s", line)
	}
	if v.Rates == nil || v.Rates.Submitted <= 0 || v.Rates.Submitted > 1e6 || v.Rates.Failed != 0 {
		t.Errorf("the rates: %s", line)
	}
	if len(v.Types) != 2 || v.Types[0].TaskType != "mail" || v.Types[0].Counts["pending"] != 1 || !v.Types[1].Paused {
		t.Errorf("the types: %s", line)
	}
	if len(v.Workers) != 1 || v.Workers[0].WorkerID != "w1" || v.Workers[0].Claimed != 1 || v.Workers[0].LastSeenMS == nil {
		t.Errorf("the workers: %s", line)
	}
	if len(v.Nodes) != 1 || *v.Nodes[0].LagEntries != 0 || *v.Nodes[0].DiskFreeBytes <= 0 || *v.Nodes[0].MemoryBytes <= 0 || *v.StateLimitBytes <= 0 {
		t.Errorf("the nodes: %s", line)
	}

	frame, failures, code := runTop(t.Context(), "--interval", "200ms", "--endpoint", d.url(0)) // not on a terminal, so it prints one frame
	if code != 0 {
		t.Errorf("exit code %d: %s", code, failures)
	}
	for _, want := range []string{"claimq  leader n1  term ", "per s:  submitted ", "\nsms ", " paused\n", "\nw1 ", "\nn1 "} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in:\n%s", want, frame)
		}
	}
	if strings.Contains(frame, "\x1b") {
		t.Errorf("escapes where there is no terminal: %q", frame)
	}
}

// An error is reported as by any other command.
func TestTop_refused(t *testing.T) {
	t.Parallel()
	forbidden := `403 {"success":false,"error":"This key may do nothing","code":"forbidden","message":"Use another"}`
	server := httptest.NewServer(&fakeAPI{answers: map[string]string{
		"GET /api/cluster": forbidden, "GET /metrics": forbidden, "GET /api/types": forbidden, "GET /api/workers": forbidden,
	}})
	t.Cleanup(server.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"not allowed": {[]string{"--endpoint", server.URL}, term.ExitRefused, "This key may do nothing (forbidden)\nUse another\n"},
		"no node":     {[]string{"--endpoint", gone.URL}, term.ExitUnknown, "Start nodes with 'claimq dev'"},
		"too often":   {[]string{"--interval", "100ms"}, term.ExitUsage, "--interval is 100ms: it must be 200ms to 1m0s"},
		"too seldom":  {[]string{"--interval", "2m"}, term.ExitUsage, "--interval is 2m0s: it must be 200ms to 1m0s"},
		"no endpoint": {[]string{"--endpoint", " "}, term.ExitUsage, "--endpoint is empty"},
		"no URL":      {[]string{"--endpoint", "localhost"}, term.ExitUsage, "it must begin with http:// or https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stderr, code := runTop(t.Context(), test.args...)
			if code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, want %d: %s", code, test.code, stderr)
			}
		})
	}
}

// top reads its certificate files again, because certificates expire while it runs.
func TestTop_certificatesAgain(t *testing.T) {
	t.Parallel()
	before, after := certstest.NewAuthority(t, "before"), certstest.NewAuthority(t, "after")
	server, trust := certstest.Serve(t, &fakeAPI{answers: map[string]string{
		"GET /api/cluster": `200 {"success":true,"leader":"n1","term":1,"nodes":[]}`, "GET /api/types": `200 {"success":true,"types":[]}`,
		"GET /api/workers": `200 {"success":true,"workers":[]}`, "GET /metrics": "200 ",
	}}, before)
	dir := t.TempDir()
	files := certstest.Write(t, dir, before.Issue([]string{"operator"}), before)

	ctx, stop := context.WithTimeout(t.Context(), testwait.Patience)
	reads, writes := io.Pipe()
	var failures bytes.Buffer
	var wg sync.WaitGroup
	wg.Go(func() {
		a := &term.App{Stdin: strings.NewReader(""), Stdout: writes, Stderr: &failures}
		if code := run(ctx, a, []string{
			"top", "--output", "json", "--interval", "200ms", "--endpoint", server.URL,
			"--ca-file", files.CA, "--cert-file", files.Cert, "--key-file", files.Key,
		}); code != 0 && ctx.Err() == nil {
			t.Errorf("exit code %d: %s", code, failures.String())
		}
		writes.Close()
	})
	defer wg.Wait()
	defer reads.Close()
	defer stop()
	lines := bufio.NewScanner(reads)
	well := func() bool { // checked like the next line
		var v top.View
		if !lines.Scan() {
			t.Fatal("it has ended")
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return !strings.Contains(strings.Join(v.Problems, "\n"), "the cluster: ")
	}
	if !well() {
		t.Fatalf("with the files of the start: %s", lines.Text())
	}
	trust(after)
	server.CloseClientConnections()
	for well() { // it may have looked just before
	}
	certstest.Write(t, dir, after.Issue([]string{"operator"}), after)
	for !well() {
	}
}
