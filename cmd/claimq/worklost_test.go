package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// If a worker loses its claim, its command is stopped. How that command ends settles nothing, even with exit code 0.
func TestWork_losesItsClaim(t *testing.T) {
	t.Parallel()
	l := newWorkLab(t)
	id := l.submit(t, "lost", "1", 3)
	p := l.work(t, "lost", "trap 'echo told >told; exit 0' TERM; echo $$ >lost; while :; do sleep 0.05; done", "--lease", "6s") // it extends every 2 s
	pid := l.appears(t, "lost")
	for _, args := range [][]string{{"type", "set", "lost", "--pause"}, {"retry", id}} {
		if out, err := claimq(t.Context(), append(args, "--endpoint", l.d.url(0))...).CombinedOutput(); err != nil {
			t.Fatalf("claimq %s: %v: %s", args, err, out)
		}
	}
	l.appears(t, "told")
	gone(t, pid)
	out := p.stop(t)
	if !strings.Contains(out, "1 lost") || !strings.Contains(out, "0 completed, 0 failed, 0 given back") {
		t.Errorf("it says\n%s", out)
	}
	got := l.until(t, id, "pending", func(task *client.Task) bool { return task.Status == client.StatusPending })
	if len(got.Result) != 0 || got.Error != "" {
		t.Errorf("the task is %+v", got)
	}
}

// A worker ends with an error if its key is refused. If it is refused only for a while, it asks again.
func TestWork_keyIsRefused(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			var claims atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if claims.Add(1) == 1 {
					w.WriteHeader(http.StatusTooManyRequests)
					io.WriteString(w, `{"success":false,"error":"Too many","code":"rate_limited","message":"m"}`)
					return
				}
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"success":false,"error":"The key is no good","code":%q,"message":"Take another"}`, code)
			}))
			defer server.Close()
			var stderr bytes.Buffer
			a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr, Environ: []string{"CLAIMQ_API_KEY=k"}}
			if got := run(t.Context(), a, []string{"work", "--type", "mail", "--endpoint", server.URL, "true"}); got != term.ExitRefused {
				t.Errorf("exit code %d, want %d", got, term.ExitRefused)
			}
			if want := "claimq: the worker's key was refused: The key is no good (" + code + ")\nTake another\n"; !strings.Contains(stderr.String(), want) {
				t.Errorf("it says\n%s", stderr.String())
			}
			if n := claims.Load(); n < 2 {
				t.Errorf("it has asked %d times", n)
			}
		})
	}
}

// A worker says that no server answers, whichever its kind, goes on, and says when one does.
func TestWork_noServer(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"commands": {"--type", "mail", "true"}, "programs": {"--serve", "--", "cat"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			stderr, said := io.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan int, 1)
			go func() {
				a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: said}
				ended <- run(ctx, a, append([]string{"work", "--endpoint", "http://" + addr}, args...))
				_ = said.Close()
			}()
			lines := bufio.NewScanner(stderr)
			until := func(prefix string) {
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), prefix) {
						return
					}
				}
				t.Errorf("it does not say %q", prefix)
			}
			until("the cluster does not answer, and is asked again")
			if l, err = net.Listen("tcp", addr); err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"success":true,"defaults":{"lease_ms":1000,"max_attempts":1,"backoff":null,"retention_ms":0,"failed_retention_ms":0}}`)
			}), ReadHeaderTimeout: time.Minute}
			go func() { _ = server.Serve(l) }()
			defer server.Close()
			until("the cluster answers")
			stop()
			_, _ = io.Copy(io.Discard, stderr)
			if code := <-ended; code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
