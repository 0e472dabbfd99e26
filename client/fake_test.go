package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// request is a request that a fake node received.
type request struct {
	method, path, key string // including the query
	redirect          bool   // the client asked for the leader's address
	body              string
}

// field returns a field of the body.
func (r request) field(t *testing.T, name string) any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Fatalf("body %q: %v", r.body, err)
	}
	return m[name]
}

// reply answers one request to a fake node.
type reply func(w http.ResponseWriter, r *http.Request)

// says answers with a status and a body.
func says(status int, body string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// refuses answers as the server does for the code.
func refuses(code wire.Code) reply {
	return says(code.Status(), fmt.Sprintf(
		`{"success":false,"error":"E","code":%q,"message":"M","request_id":"R","extra":7}`, code))
}

// breaks closes the connection instead of answering.
func breaks(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}

// breaksMidway closes the connection in the middle of the answer's body.
func breaksMidway(w http.ResponseWriter, _ *http.Request) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"success\":true")
	buf.Flush()
	conn.Close()
}

// redirects answers with the leader's address.
func redirects(base string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", base+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// script answers requests in order, and repeats the last reply.
type script struct {
	mu      sync.Mutex
	replies []reply
	got     []request
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	answer := s.replies[min(len(s.got), len(s.replies)-1)]
	s.got = append(s.got, request{
		method: r.Method, path: r.URL.RequestURI(), key: r.Header.Get("X-API-Key"),
		redirect: r.Header.Get("X-Claimq-Redirect") == "1", body: string(body),
	})
	s.mu.Unlock()
	answer(w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, string(body))))
}

// bodyKey is the context key of the request's body, which has been read.
type bodyKey struct{}

func (s *script) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.got...)
}

// node starts a fake node that answers with the replies in order.
func node(t *testing.T, replies ...reply) (*script, *httptest.Server) {
	t.Helper()
	s := &script{replies: replies}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server
}

// clientOf returns a client of the endpoints, with a Timeout that is long enough on any machine.
func clientOf(t *testing.T, endpoints ...string) *Client {
	t.Helper()
	c, err := New(Config{Endpoints: endpoints, APIKey: "secret", Timeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// talk returns a client of one fake node.
func talk(t *testing.T, replies ...reply) (*script, *Client) {
	t.Helper()
	s, server := node(t, replies...)
	return s, clientOf(t, server.URL)
}

// memoryTransport calls a handler in the same goroutine, because a synctest bubble cannot use the network.
type memoryTransport struct{ http.Handler }

func (m memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = io.NopCloser(strings.NewReader(""))
	}
	rec := httptest.NewRecorder()
	m.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// talkInMemory is talk without a network. The caller closes the client.
func talkInMemory(t *testing.T, replies ...reply) (*script, *Client) {
	t.Helper()
	s := &script{replies: replies}
	c, err := newClient(Config{Endpoints: []string{"http://memory"}}, memoryTransport{s}, memoryTransport{s})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

const (
	pendingTask = `{"success":true,"created":true,"task":{"id":17,"task_type":"mail","params":{"to":"ada"},"status":"pending"}}`
	claimedTask = `{"success":true,"task":{"id":17,"task_type":"mail","params":{"to":"ada"},"status":"claimed",` +
		`"worker_id":"w1","claim_token":5,"lease_remaining_ms":30000}}`
	okAnswer = `{"success":true,"task":{"id":17,"status":"completed"}}`
)

// claimFor returns a claim whose client gets the further replies.
func claimFor(t *testing.T, replies ...reply) (*script, *Claim) {
	t.Helper()
	s, c := talk(t, append([]reply{says(200, claimedTask)}, replies...)...)
	cl, err := c.ClaimNext(t.Context(), ClaimRequest{WorkerID: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	return s, cl
}
