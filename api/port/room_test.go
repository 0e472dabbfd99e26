package port

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoom_wait ensures that a waiter gets room when it is returned, and nothing once its time is over.
func TestRoom_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := &Room{most: 100}
		if !room.Take(1000) {
			t.Fatal("one answer alone has no room")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if room.Wait(ctx, 1) {
			t.Error("there was room")
		}
		got := make(chan bool)
		for range 2 {
			go func() { got <- room.Wait(t.Context(), 60) }()
		}
		synctest.Wait()
		room.Give(1000)
		if !<-got {
			t.Error("no room for one")
		}
		room.Give(60)
		if !<-got {
			t.Error("no room for the other")
		}
		if n := room.Taken(); n != 60 {
			t.Errorf("%d bytes are taken, want 60", n)
		}
	})
}
