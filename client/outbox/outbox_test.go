package outbox_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/outbox"
)

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	if _, err := outbox.New(0, ""); err == nil || !strings.Contains(err.Error(), "Postgres or MySQL") {
		t.Errorf("no dialect: %v", err)
	}
	for _, table := range []string{"a b", "a;b", `a"`, "1a", "a.b.c", "a.", strings.Repeat("a", 64)} {
		if _, err := outbox.New(outbox.MySQL, table); err == nil || !strings.Contains(err.Error(), "it must be a name") {
			t.Errorf("table %q: %v", table, err)
		}
	}
	box, err := outbox.New(outbox.Postgres, "app.Outbox_2")
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []outbox.RelayConfig{{Batch: -1}, {Batch: 1001}, {Interval: -time.Second}} {
		if _, err := box.NewRelay(nil, nil, cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// statements records executed statements.
type statements struct {
	queries []string
	args    []any
}

func (s *statements) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	s.queries = append(s.queries, query)
	s.args = append(s.args, args...)
	return nil, nil
}

// Submit inserts tasks, each with its own key and the trace context, all or none.
func TestOutbox_Submit(t *testing.T) {
	t.Parallel()
	box, err := outbox.New(outbox.Postgres, "")
	if err != nil {
		t.Fatal(err)
	}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var tx statements
	ctx := client.WithTraceparent(t.Context(), trace)
	if err := box.Submit(ctx, &tx, client.Task{Payload: []byte("1"), IdempotencyKey: "mine"}, client.Task{Payload: []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if len(tx.queries) != 1 || tx.queries[0] != "INSERT INTO claimq_outbox (task) VALUES ($1),($2)" || len(tx.args) != 2 {
		t.Fatalf("executed %q", tx.queries)
	}
	first, second := string(tx.args[0].([]byte)), string(tx.args[1].([]byte))
	if !strings.Contains(first, `"idempotency_key":"mine"`) || !strings.Contains(second, `"idempotency_key":"`) || !strings.Contains(second, trace) {
		t.Errorf("inserted %s and %s", first, second)
	}
	for _, tasks := range [][]client.Task{{{Payload: []byte("1")}, {}}, make([]client.Task, 1001)} {
		if err := box.Submit(ctx, &tx, tasks...); err == nil {
			t.Errorf("%d tasks, one of which has no payload, are taken", len(tasks))
		}
	}
	if err := box.Submit(ctx, &tx); err != nil || len(tx.queries) != 1 {
		t.Errorf("nothing at all: %v, %q", err, tx.queries)
	}
}
