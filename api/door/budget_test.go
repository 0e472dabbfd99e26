package door

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudget_Reserve ensures that a waiter gets memory when it is freed, and nothing once its time is over.
func TestBudget_Reserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := &Budget{most: 100}
		if !budget.TryReserve(1000) {
			t.Fatal("one answer alone does not fit")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if budget.Reserve(ctx, 1) {
			t.Error("a second answer fits")
		}
		got := make(chan bool)
		for range 2 {
			go func() { got <- budget.Reserve(t.Context(), 60) }()
		}
		synctest.Wait()
		budget.Free(1000)
		if !<-got {
			t.Error("one answer does not fit")
		}
		budget.Free(60)
		if !<-got {
			t.Error("the other answer does not fit")
		}
		if n := budget.Reserved(); n != 60 {
			t.Errorf("%d bytes are reserved, want 60", n)
		}
	})
}
