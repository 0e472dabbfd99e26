package workers

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds what must happen.
const patience = 60 * time.Second

// testWay is a way to one node that answers every call, and counts them.
func testWay(t *testing.T) (w *way, k *strikes, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	node := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(rw, `{"success":true}`)
	}))
	t.Cleanup(node.Close)
	k = &strikes{}
	w, err := openWay(0, []string{node.URL}, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w, k, asked
}

// post makes a call by the way.
func post(ctx context.Context, w *way, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.own[0]+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.Header.Get("Location") + string(text), err
}

// A strike is done at the call and in the phase that it names, once.
func TestWay_strikes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call       call
		path, body string
	}{
		{claim, "/api/tasks/claim", "{}"},
		{extend, "/api/tasks/1/extend", "{}"},
		{complete, "/api/tasks/1/complete", "{}"},
		{completeAndClaim, "/api/tasks/1/complete", `{"claim":{}}`},
		{fail, "/api/tasks/1/fail", "{}"},
		{release, "/api/tasks/1/release", "{}"},
		{release, "/api/batch", "{}"},
	} {
		for _, p := range phases {
			t.Run(string(p)+" "+string(c.call), func(t *testing.T) {
				t.Parallel()
				w, armed, asked := testWay(t)
				at := int64(-1)
				k := &strike{call: c.call, phase: p, slot: anySlot, drop: p == after, do: func() { at = asked.Load() }}
				armed.arm(k)
				if _, err := post(t.Context(), w, "/api/tasks/1/none", ""); err != nil || at >= 0 {
					t.Fatalf("another call: %v, struck %v", err, at >= 0)
				}
				_, err := post(t.Context(), w, c.path, c.body)
				if dropped := err != nil; dropped != k.drop {
					t.Errorf("answer: %v", err)
				}
				<-k.hit
				if p == before && at != 1 || p == after && at != 2 {
					t.Errorf("the node had been asked %d times", at)
				}
				if _, err := post(t.Context(), w, c.path, c.body); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		}
	}
}

// Who is sent on to the leader is sent to the proxy in front of it, whichever of
// the nodes that is.
func TestWay_redirect(t *testing.T) {
	t.Parallel()
	nodes := []string{"", "http://127.0.0.1:1", "http://127.0.0.1:2"}
	follower := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", nodes[2]+"/api/tasks/claim")
		rw.WriteHeader(http.StatusTemporaryRedirect)
	}))
	t.Cleanup(follower.Close)
	nodes[0] = follower.URL
	w, err := openWay(0, nodes, &strikes{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	if got, err := post(t.Context(), w, "/api/tasks/claim", "{}"); got != w.own[2]+"/api/tasks/claim" {
		t.Errorf("%s, %v", got, err)
	}
}

// Nothing passes a cut; what waited at a silent one goes on when it is over.
func TestWay_cut(t *testing.T) {
	t.Parallel()
	w, _, asked := testWay(t)
	w.set(closed)
	if _, err := post(t.Context(), w, "/api/tasks/claim", "{}"); err == nil {
		t.Error("it is closed, and there is an answer")
	}
	w.set(silent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := post(ctx, w, "/api/tasks/claim", "{}"); err == nil || ctx.Err() == nil || asked.Load() != 0 {
		t.Errorf("%v, the node was asked %d times", err, asked.Load())
	}
	done := make(chan error)
	go func() {
		_, err := post(t.Context(), w, "/api/tasks/claim", "{}")
		done <- err
	}()
	w.set(whole)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the cut is over, and there is no answer")
	}
}

// A strike that is taken back is not done.
func TestStrikes_disarm(t *testing.T) {
	t.Parallel()
	s := &strikes{}
	k, other := &strike{call: claim, slot: 1}, &strike{call: claim, slot: anySlot}
	s.arm(k)
	if s.take(claim, 0) != nil || s.take(extend, 1) != nil || !s.disarm(k) || s.disarm(k) || s.take(claim, 1) != nil {
		t.Error("it is not for that call")
	}
	s.arm(other)
	if s.take(claim, 3) != other || s.disarm(other) || s.take(claim, 3) != nil {
		t.Error("it is for any worker's claim, once")
	}
}
