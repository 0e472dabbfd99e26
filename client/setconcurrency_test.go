package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// A worker runs at most the number of handlers that was set last, and claims nothing when that is 0.
func TestWorker_SetConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.New(t, clienttest.Ticking())
		w, err := client.NewWorker(s.Client(), client.WorkerConfig{Concurrency: 4, StopWait: client.NoStopWait})
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		client.Handle(w, "job", func(ctx context.Context, _ *client.Job[[]byte]) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil
		})
		for range 10 {
			if _, err := s.Client().Submit(t.Context(), client.Task{TaskType: "job", Payload: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
		w.SetConcurrency(0)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- w.Run(ctx) }()
		running := func(when string, want int64) {
			t.Helper()
			<-time.After(10 * time.Second) // of the bubble
			synctest.Wait()
			if got := w.Stats().Running; got != want {
				t.Errorf("%s: %d handlers run, want %d", when, got, want)
			}
		}
		running("with none", 0)
		w.SetConcurrency(2)
		running("with two", 2)
		w.SetConcurrency(9) // WorkerConfig.Concurrency is the limit
		running("with too many", 4)
		w.SetConcurrency(1)
		running("with fewer than run", 4)
		for range 3 {
			release <- struct{}{}
		}
		running("when three have returned", 1)
		release <- struct{}{}
		running("when one more has", 1)
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
