package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// testBodyMax bounds the bodies of the test server's own calls.
const testBodyMax = 64 << 10

type testServerOptions struct {
	at   string
	port int
}

// NewTestServerCommand returns the command `claimq testserver`.
func NewTestServerCommand(a *term.App) *cobra.Command {
	var o testServerOptions
	cmd := &cobra.Command{
		Use:   "testserver",
		Short: "Run an in-memory server for tests, which control its clock",
		Long: `Run an in-memory server for tests of programs in any language, until its standard
input ends, or SIGTERM or Ctrl-C. It starts within milliseconds, prints its URL as
one line and answers like a cluster. It stores nothing and needs no API key.

Its clock stands still. Two calls control it:

  POST /test/advance {"ms": 60000}   advances the clock; whatever becomes due happens
  POST /test/reset                   starts afresh, with the first ids, tokens and time

Both answer with "now", the server's time. Start it from a test with a pipe as
standard input, so that it ends with the test in any case.`,
		Example: `  claimq testserver
  claimq testserver --at now --port 7400
  curl -d '{"ms":60000}' http://127.0.0.1:7400/test/advance`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTestServer(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.at, "at", clienttest.Start().Format(time.RFC3339), "initial time: RFC 3339, or now")
	f.IntVar(&o.port, "port", 0, "port on 127.0.0.1; 0: any free port")
	return cmd
}

func runTestServer(ctx context.Context, a *term.App, o testServerOptions) error {
	if o.port < 0 || o.port > 65535 {
		return term.UsageErrorf("--port is %d: it must be 0 to 65535", o.port)
	}
	if o.at != "now" {
		if at, err := time.Parse(time.RFC3339, o.at); err != nil || at.Year() < 1970 || at.Year() > 9999 {
			return term.UsageErrorf("--at is %q: it must be a time as 2026-01-01T00:00:00Z, from 1970 on, or now", o.at)
		}
	}
	s := &testServer{at: o.at}
	if err := s.begin(); err != nil {
		return err
	}
	defer func() { s.server.Load().Close() }() // the one since the last reset
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w: choose another port with --port", err)
	}
	// The port is open before the line is printed, so that its reader can connect at once.
	if err := a.Sayf("http://%s", ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, a.Stdin)
		end()
	}()
	front := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { front.Close() }) //nolint:errcheck // the process ends
	if err := front.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// testServer is one server of package clienttest after another, at the same address.
type testServer struct {
	at     string
	faults faults

	mu     sync.Mutex // held during a reset
	server atomic.Pointer[clienttest.Server]
}

// begin starts a new server and closes the previous one.
func (s *testServer) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	if s.at != "now" {
		at, _ = time.Parse(time.RFC3339, s.at) // checked before
	}
	next := clienttest.New(&s.faults, clienttest.StartAt(at))
	if next == nil {
		return s.faults.take()
	}
	if last := s.server.Swap(next); last != nil {
		go last.Close() // its waiting clients are told to ask again; stopping takes 100 ms
	}
	return s.faults.take()
}

func (s *testServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /test/advance", s.advance)
	mux.HandleFunc("POST /test/reset", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.begin()) })
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			// A client may have it from before a reset. A single node does not need it.
			r.Out.Header.Del("X-Claimq-Min-Index")
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return s.server.Load().Dial(ctx, network, address)
			},
			// A kept connection would lead to the server before a reset.
			DisableKeepAlives: true, DisableCompression: true,
		},
		FlushInterval: -1, // events stream
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.Header().Set("Retry-After", "0")
			fail(w, http.StatusServiceUnavailable, "shutting_down", "The server was reset: "+err.Error())
		},
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// The transport reads the end of the request's body while the answer is sent. Without this the HTTP server
		// might have closed the body by then, and the transport would abort the answer.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 has it
		proxy.ServeHTTP(w, r)
	})
	return mux
}

func (s *testServer) advance(w http.ResponseWriter, r *http.Request) {
	var by struct {
		MS *int64 `json:"ms"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, testBodyMax))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		err = d.Decode(&by)
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, "invalid_request", err.Error())
	case by.MS == nil || *by.MS < 0 || *by.MS > most:
		fail(w, http.StatusBadRequest, "invalid_request", `"ms" is the time to advance, in milliseconds: it must be an integer from 0 on`)
	default:
		s.server.Load().Advance(time.Duration(*by.MS) * time.Millisecond)
		s.answer(w, s.faults.take())
	}
}

// answer answers with the time, or an error.
func (s *testServer) answer(w http.ResponseWriter, err error) {
	if err != nil {
		fail(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	send(w, http.StatusOK, map[string]any{"success": true, "now": s.server.Load().Now().Format("2006-01-02T15:04:05.000Z07:00")})
}

func fail(w http.ResponseWriter, status int, code, text string) {
	send(w, status, map[string]any{"success": false, "code": code, "error": text})
}

func send(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

// faults collects the failures that a server of package clienttest reports to its test.
type faults struct {
	mu  sync.Mutex
	all []error
}

func (f *faults) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(f.all...)
	f.all = nil
	return err
}

// Errorf implements clienttest.TB.
func (f *faults) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, fmt.Errorf(format, args...))
}

// Fatalf is Errorf, because its callers here return then.
func (f *faults) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

// Helper does nothing.
func (f *faults) Helper() {}

// Cleanup does nothing, because the servers are closed one by one.
func (f *faults) Cleanup(func()) {}
