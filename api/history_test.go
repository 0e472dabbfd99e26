package api

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/history"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

func TestServer_History(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	columns := `"submitted":[],"completed":[],"failed":[],"pending":[],"claimed":[],"oldest_pending_age_ms":[],"waited_p50_ms":[],"waited_p99_ms":[],"ran_p50_ms":[],"ran_p99_ms":[]}`
	got := s.call(t, "GET /api/history", "").body
	if !strings.Contains(got, `"task_type":null,"interval_ms":10000,"since":null,"from":null,"kept":true,`+columns) {
		t.Errorf("not begun: %s", got)
	}
	synctest.Test(t, func(t *testing.T) {
		node := nodetest.New()
		h := history.New(node, 1<<20)
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			h.Run(ctx)
		}()
		synctest.Wait()
		for _, cmd := range []command.Command{
			command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1")}}},
			command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: 60_000},
		} {
			if _, err := node.Apply(cmd); err != nil {
				t.Error(err)
			}
			node.Advance(1500)
		}
		<-time.After(history.Interval)
		synctest.Wait()
		cancel()
		<-done
		s.history = h
	})
	got = s.call(t, "GET /api/history?minutes=1", "").body
	want := `"since":"2000-01-01T00:00:00.000Z","from":"2000-01-01T00:00:00.000Z","kept":true,"submitted":[1],"completed":[0],"failed":[0],"pending":[0],"claimed":[1],"oldest_pending_age_ms":[0],` +
		`"waited_p50_ms":[1407],"waited_p99_ms":[1407],"ran_p50_ms":[null],"ran_p99_ms":[null]}`
	if !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
