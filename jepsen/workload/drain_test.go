package workload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/recorder"
)

// What a worker began before the drain may submit a task at its end: the queue is empty once
// that is over, not before, whatever a node counts.
func TestWorkload_waitEmpty(t *testing.T) {
	t.Parallel()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"success":true,"counts":{}}`)
	}))
	t.Cleanup(node.Close)
	w := &Workload{rec: recorder.New(1), cfg: Config{Nodes: []string{node.URL}}}
	empty := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return w.waitEmpty(ctx)
	}
	w.counted(func() {
		w.drain.Store(true)
		if err := empty(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a worker is at work: %v", err)
		}
	})
	w.counted(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := w.waitEmpty(ctx); err != nil {
			t.Errorf("it began after the drain: %v", err)
		}
	})
}
