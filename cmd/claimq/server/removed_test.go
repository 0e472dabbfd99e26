package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The process of a node that was removed tells so for a while, and then ends; any other goes on.
func TestLingered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		over, goesOn := lingered(ctx, left), lingered(ctx, make(chan struct{}))
		isOver := func() bool {
			synctest.Wait()
			select {
			case <-over:
				return true
			default:
				return false
			}
		}
		<-time.After(24 * time.Hour)
		if isOver() {
			t.Error("a member ends")
		}
		close(left)
		<-time.After(removedLinger - time.Second)
		if isOver() {
			t.Error("a removed node ends at once")
		}
		<-time.After(2 * time.Second)
		if !isOver() {
			t.Error("a removed node does not end")
		}
		select {
		case <-goesOn:
			t.Error("another node ends")
		default:
		}
		cancel()
	})
}
