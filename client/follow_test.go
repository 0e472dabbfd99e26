package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Close called within the loop returns, whether the loop continues, ends or panics.
func TestClient_Follow_close(t *testing.T) {
	t.Parallel()
	for _, goesOn := range []bool{false, true} {
		_, c := talk(t, streams(event("5.0"), event("5.1")))
		events, last := 0, error(nil)
		for _, err := range c.Follow(t.Context(), EventFilter{}) {
			if err != nil {
				last = err
				break
			}
			events++
			c.Close()
			if !goesOn {
				break
			}
		}
		if events != 1 || errors.Is(last, ErrClosed) != goesOn {
			t.Errorf("the loop goes on %v: %d events, %v", goesOn, events, last)
		}
	}
	_, c := talk(t, streams(event("5.0")))
	func() {
		defer func() { _ = recover() }()
		for range c.Follow(t.Context(), EventFilter{}) {
			panic("in the loop")
		}
	}()
	c.Close() // it waits for nothing
}

// If a node does not know the key yet, another is asked.
func TestClient_Follow_unknownKey(t *testing.T) {
	t.Parallel()
	_, one := node(t, refuses(wire.CodeUnauthorized))
	_, two := node(t, streams(event("5.0")))
	c := clientOf(t, one.URL, two.URL)
	for _, err := range c.Follow(t.Context(), EventFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	c = clientOf(t, one.URL)
	for _, err := range c.Follow(t.Context(), EventFilter{}) {
		if !errors.Is(err, ErrUnauthorized) {
			t.Errorf("no node knows the key: %v", err)
		}
	}
}

// silentOnce answers with streams. The first is silent after its headers, the others send a comment every 3 s.
type silentOnce struct{ begun []time.Time }

func (f *silentOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	f.begun = append(f.begun, time.Now())
	silent := len(f.begun) == 1
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
	go func() {
		_, err := io.WriteString(w, "retry: 1000\nid: 4.0\n\n")
		for err == nil && !silent {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(3 * time.Second):
				_, err = io.WriteString(w, ": still here\nid: 4.1\n\n")
			}
		}
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Body: body, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}},
	}, nil
}

// A stream that is silent, for example behind a frozen proxy, is replaced within 10 s. One that gets a comment every
// 3 s is kept.
func TestClient_Follow_silence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		transport := new(silentOnce)
		c, err := newClient(Config{Endpoints: []string{"http://memory"}}, transport, transport)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for e, err := range c.Follow(ctx, EventFilter{}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it yielded %+v, %v", e, err)
			}
		}
		if len(transport.begun) != 2 {
			t.Fatalf("%d streams, want 2", len(transport.begun))
		}
		if took := transport.begun[1].Sub(transport.begun[0]); took > 10*time.Second {
			t.Errorf("the stream that is silent was left after %v", took)
		}
	})
}
