package outbox_test

import (
	"context"
	"database/sql"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/outbox"
)

// Order is an order of the application's.
type Order struct{ ID, Total int64 }

func placeOrder(ctx context.Context, db *sql.DB, box *outbox.Outbox, order Order) error {
	task, err := client.NewTask("invoice", order)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id, total) VALUES ($1, $2)`, order.ID, order.Total); err != nil {
		return err
	}
	if err := box.Submit(ctx, tx, task); err != nil {
		return err
	}
	return tx.Commit()
}

func relay(ctx context.Context, db *sql.DB, c *client.Client) error {
	box, err := outbox.New(outbox.Postgres, "claimq_outbox") // the table that box.Schema() makes
	if err != nil {
		return err
	}
	r, err := box.NewRelay(db, c, outbox.RelayConfig{})
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// An order and the task that follows it are committed together; a relay, in the program or
// beside it, submits the task.
func ExampleOutbox_Submit() {
	ctx := context.Background()
	db, err := sql.Open("postgres", "dbname=shop")
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Config{})
	if err != nil {
		panic(err)
	}
	go relay(ctx, db, c) // it ends with ctx
	box, err := outbox.New(outbox.Postgres, "claimq_outbox")
	if err != nil {
		panic(err)
	}
	if err := placeOrder(ctx, db, box, Order{ID: 17, Total: 4200}); err != nil {
		panic(err)
	}
}
