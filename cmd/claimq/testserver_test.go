package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
)

// testServer is a running claimq testserver.
type testServer struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
}

func startTestServer(t *testing.T, flags ...string) *testServer {
	t.Helper()
	s := &testServer{t: t, cmd: claimq(context.Background(), append([]string{"testserver"}, flags...)...)}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	s.stdin = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSpace(line)
	return s
}

// post makes a call and returns its status and its body.
func (s *testServer) post(path, body string) (int, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), claimqtest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// want makes a call and checks its status and a part of its body.
func (s *testServer) want(path, body string, status int, part string) {
	s.t.Helper()
	if got, answer := s.post(path, body); got != status || !strings.Contains(answer, part) {
		s.t.Errorf("POST %s %s: %d %s, want %d and %s", path, body, got, answer, status, part)
	}
}

// Even large answers to requests with large bodies are complete.
func TestTestServer_largeAnswers(t *testing.T) {
	t.Parallel()
	s := startTestServer(t)
	params := strings.Repeat("x", 50_000)
	for range 50 {
		s.want("/api/tasks", `{"task_type":"mail","params":"`+params+`"}`, 201, params)
	}
}

// The server's time stands still until a call moves it. A reset deletes everything. The server ends with its standard
// input.
func TestTestServer(t *testing.T) {
	t.Parallel()
	s := startTestServer(t, "--at", "2026-03-01T12:00:00+01:00")
	s.want("/api/tasks", `{"task_type":"mail","params":1,"delay_ms":60000}`, 201, `"id":1`)
	claim := `{"worker_id":"w1","task_types":["mail"]}`
	s.want("/api/tasks/claim", claim, 404, "no_pending_tasks")
	s.want("/test/advance", `{"ms":59999}`, 200, `"now":"2026-03-01T11:00:59.999Z"`)
	s.want("/api/tasks/claim", claim, 404, "no_pending_tasks")
	s.want("/test/advance", `{"ms":1}`, 200, `"now":"2026-03-01T11:01:00.000Z"`)
	s.want("/api/tasks/claim", claim, 200, `"claim_token":1`)
	for _, bad := range []string{``, `{}`, `{"ms":-1}`, `{"ms":1.5}`, `{"ms":9223372036854775807}`, `{"s":1}`} {
		s.want("/test/advance", bad, 400, `"code":"invalid_request"`)
	}

	c, err := client.New(client.Config{Endpoints: []string{s.url}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), claimqtest.Patience)
	defer cancel()
	got := make(chan error, 1)
	go func() { // it still waits at the reset
		claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w2", Types: []string{"mail"}, Wait: time.Minute})
		if err == nil && claim.Task.ID != "1" {
			err = errors.New("it is task " + claim.Task.ID)
		}
		got <- err
	}()
	s.want("/test/reset", "", 200, `"now":"2026-03-01T11:00:00.000Z"`)
	s.want("/api/tasks", `{"task_type":"mail","params":1}`, 201, `"id":1`)
	if err := <-got; err != nil {
		t.Errorf("a claim that waited: %v", err)
	}

	if err := s.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestTestServer_signal(t *testing.T) {
	t.Parallel()
	s := startTestServer(t)
	s.want("/test/advance", `{"ms":0}`, 200, `"now":"2026-01-01T00:00:00.000Z"`)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
