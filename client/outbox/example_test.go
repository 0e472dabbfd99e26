package outbox_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/outbox"
)

// A task is stored in the transaction that also stores the order, so that there is a mail for each order and none
// for an order that was rolled back. A Relay of another goroutine submits it after the commit.
func ExampleOutbox_Submit() {
	box, err := outbox.New(outbox.Postgres, outbox.DefaultTable)
	if err != nil {
		panic(err)
	}
	var tx transaction // in a program: tx, err := db.BeginTx(ctx, nil)
	ctx := context.Background()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", 17); err != nil {
		panic(err)
	}
	task := client.Task{TaskType: "mail", Payload: []byte(`{"order":17}`), IdempotencyKey: "order-17"}
	if err := box.Submit(ctx, &tx, task); err != nil {
		panic(err)
	}
	for _, statement := range tx.statements {
		fmt.Println(statement)
	}
	// Output:
	// INSERT INTO orders (id) VALUES ($1)
	// INSERT INTO claimq_outbox (task) VALUES ($1)
}

// transaction records statements. It stands in for a *sql.Tx, which needs a database.
type transaction struct{ statements []string }

func (t *transaction) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	t.statements = append(t.statements, query)
	return nil, nil //nolint:nilnil // Submit does not read the result
}
