package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// mill is a server that always has a task, and does as little as can be.
type mill struct{ id atomic.Uint64 }

func (m *mill) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	task := func() string {
		id := m.id.Add(1)
		return fmt.Sprintf(`{"id":%d,"task_type":"mail","params":{"to":"ada@example.org"},"priority":0,"max_attempts":3,"attempts":1,"status":"claimed",`+
			`"worker_id":"w1","claim_token":%d,"claimed_at":"2030-01-02T08:00:00.000Z","lease_expires_at":"2030-01-02T08:00:30.000Z","lease_remaining_ms":30000,`+
			`"created_at":"2030-01-02T08:00:00.000Z","updated_at":"2030-01-02T08:00:00.000Z","completed_at":null,"cancel_requested":false}`, id, id)
	}
	switch text := string(body); {
	case strings.HasSuffix(r.URL.Path, "/complete") && strings.Contains(text, `"claim":{`):
		fmt.Fprintf(w, `{"success":true,"task":%s,"claimed":{"task":%s}}`, `{"id":1,"task_type":"mail","status":"completed"}`, task())
	case strings.HasSuffix(r.URL.Path, "/claim"):
		fmt.Fprintf(w, `{"success":true,"task":%s,"tasks":[%s]}`, task(), task())
	default:
		io.WriteString(w, `{"success":true,"task":{"id":1,"task_type":"mail","status":"completed"}}`)
	}
}

// BenchmarkWorker compares a Worker with 64 slots to 64 goroutines that make the
// calls themselves: in two requests a task, and in one. The server is on loopback
// and does nothing, so that what is measured is the client; ns/op is per task.
func BenchmarkWorker(b *testing.B) {
	const slots = 64
	start := func(b *testing.B) *Client {
		server := httptest.NewServer(&mill{})
		b.Cleanup(server.Close)
		c, err := New(Config{Endpoints: []string{server.URL}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		b.ReportAllocs()
		b.ResetTimer()
		return c
	}
	ctx := context.Background()
	req := ClaimRequest{WorkerID: "w1", Types: []string{"mail"}}
	var left atomic.Int64
	bare := func(work func(c *Client)) func(*testing.B) {
		return func(b *testing.B) {
			c := start(b)
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for range slots {
				all.Go(func() { work(c) })
			}
			all.Wait()
		}
	}
	b.Run("bare/ClaimNext+Complete", bare(func(c *Client) {
		for left.Add(-1) >= 0 {
			cl, err := c.ClaimNext(ctx, req)
			if err == nil {
				err = cl.Complete(ctx, nil)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	}))
	b.Run("bare/CompleteAndClaim", bare(func(c *Client) {
		cl, err := c.ClaimNext(ctx, req)
		for err == nil && left.Add(-1) >= 0 {
			cl, err = cl.CompleteAndClaim(ctx, nil, req)
		}
		if err != nil {
			b.Error(err)
		}
	}))
	b.Run("Worker", func(b *testing.B) {
		c := start(b)
		left.Store(int64(b.N))
		w, err := NewWorker(c, WorkerConfig{Concurrency: slots})
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		Handle(w, "mail", func(context.Context, *Job[wire.Settle]) error {
			if left.Add(-1) <= 0 {
				stop()
			}
			return nil
		})
		if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
	})
}
