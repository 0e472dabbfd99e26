package client

import (
	"errors"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// Close within the loop returns, whether the loop goes on after it or not, and also when the loop panics.
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

// A node that does not know the key yet is left for one that does.
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
