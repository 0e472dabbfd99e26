package workers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds what must happen.
const patience = 60 * time.Second

// counting is a node that answers every call, and counts them.
func counting(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	node := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(rw, `{"success":true}`)
	}))
	t.Cleanup(node.Close)
	return node.URL, asked
}

// testWay returns a way, and a function that makes calls through it.
func testWay(t *testing.T) (w *way, post func(ctx context.Context, url, body string) error) {
	t.Helper()
	w = openWay(0, &strikes{}, 1)
	w.proxy()
	t.Cleanup(w.close)
	return w, dialing(t, w)
}

// dialing returns a caller with its own connections to a way.
func dialing(t *testing.T, w *way) (post func(ctx context.Context, url, body string) error) {
	t.Helper()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, w.proxies[0].Listener.Addr().String())
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	t.Cleanup(client.CloseIdleConnections)
	return func(ctx context.Context, url, body string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return errors.Join(err, resp.Body.Close())
	}
}

// A strike happens once, at its call and in its phase.
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
				w, post := testWay(t)
				node, asked := counting(t)
				at := int64(-1)
				k := &strike{call: c.call, phase: p, slot: anySlot, drop: p == after, do: func() { at = asked.Load() }}
				w.strikes.arm(k)
				if err := post(t.Context(), node+"/api/tasks/1/none", ""); err != nil || at >= 0 {
					t.Fatalf("another call: %v, struck %v", err, at >= 0)
				}
				err := post(t.Context(), node+c.path, c.body)
				if dropped := err != nil; dropped != k.drop {
					t.Errorf("answer: %v", err)
				}
				<-k.hit
				if p == before && at != 1 || p == after && at != 2 {
					t.Errorf("the node had been asked %d times", at)
				}
				if err := post(t.Context(), node+c.path, c.body); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		}
	}
}

// A caller that is redirected to the leader goes there by the same way.
func TestWay_redirect(t *testing.T) {
	t.Parallel()
	leader, asked := counting(t)
	follower := httptest.NewServer(http.RedirectHandler(leader+"/api/tasks/claim", http.StatusTemporaryRedirect))
	t.Cleanup(follower.Close)
	w, post := testWay(t)
	if err := post(t.Context(), follower.URL+"/api/tasks/claim", "{}"); err != nil || asked.Load() != 1 || w.counts[claim] != 2 {
		t.Errorf("%v, the leader was asked %d times, the way has passed on %v", err, asked.Load(), w.counts)
	}
}

// Nothing passes a cut; calls that waited at a silent one continue when it is over.
func TestWay_cut(t *testing.T) {
	t.Parallel()
	w, post := testWay(t)
	node, asked := counting(t)
	w.set(closed)
	if err := post(t.Context(), node+"/api/tasks/claim", "{}"); err == nil {
		t.Error("it is closed, and there is an answer")
	}
	w.set(silent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := post(ctx, node+"/api/tasks/claim", "{}"); err == nil || ctx.Err() == nil || asked.Load() != 0 {
		t.Errorf("%v, the node was asked %d times", err, asked.Load())
	}
	done := make(chan error)
	go func() { done <- post(t.Context(), node+"/api/tasks/claim", "{}") }()
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

// Only connections from before the cut are frozen; only newer ones are shut out.
func TestWay_cutOfSome(t *testing.T) {
	t.Parallel()
	for how, want := range map[cut][]bool{frozen: {false, true}, shut: {true, false}} {
		w, before := testWay(t)
		after := dialing(t, w)
		node, asked := counting(t)
		if err := before(t.Context(), node+"/api/tasks/claim", "{}"); err != nil {
			t.Fatal(err)
		}
		w.set(how)
		for i, post := range []func(context.Context, string, string) error{before, after} {
			waits, was := patience, asked.Load()
			if !want[i] {
				waits = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), waits)
			err := post(ctx, node+"/api/tasks/claim", "{}")
			cancel()
			if (err == nil) != want[i] || (asked.Load() > was) != want[i] {
				t.Errorf("%s, connection %d: %v", how, i+1, err)
			}
		}
	}
}

// A strike whose call does not come in time is removed.
func TestStrikes_takenBack(t *testing.T) {
	t.Parallel()
	s := &strikes{}
	k, other := &strike{call: claim, slot: 1}, &strike{call: claim, slot: anySlot}
	if s.hitWithin(t.Context(), k, 0) || s.take(claim, 1) != nil {
		t.Error("it waits on for its call")
	}
	s.arm(k)
	if s.take(claim, 0) != nil || s.take(extend, 1) != nil || s.take(claim, 1) != k || s.take(claim, 1) != nil {
		t.Error("it is for one worker's claim, once")
	}
	s.arm(other)
	if s.take(claim, 3) != other || s.take(claim, 3) != nil {
		t.Error("it is for any worker's claim, once")
	}
}

// A proxy answers by itself in place of the node, or replaces the node's answer.
func TestWay_strays(t *testing.T) {
	t.Parallel()
	w, _ := testWay(t)
	w.strays = 1
	node, asked := counting(t)
	early := 0
	for range 40 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, node+"/api/tasks/claim", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		before := asked.Load()
		resp, err := w.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strays[:], resp.StatusCode) || resp.Header.Get("X-Claimq-Index") != "" {
			t.Fatalf("got %d %v, want an answer of the proxy's own", resp.StatusCode, resp.Header)
		}
		if asked.Load() == before {
			early++
		}
	}
	if early == 0 || early == 40 {
		t.Errorf("the node was not asked %d times of 40", early)
	}
}
