// Package outbox submits tasks within a transaction of the application's database: the task is stored as a row in that
// database, which is committed or rolled back with the transaction, and a Relay moves the rows to claimq. It uses
// database/sql, with any driver for PostgreSQL (9.5 or later), MySQL (8.0.1) or MariaDB (10.6).
//
//	box, err := outbox.New(outbox.Postgres, "claimq_outbox")
//	...
//	tx, err := db.BeginTx(ctx, nil)
//	// ... the application's own changes, in tx ...
//	err = box.Submit(ctx, tx, client.Task{TaskType: "mail", Payload: params})
//	err = tx.Commit()
//
// and in a goroutine of one or more processes:
//
//	relay, err := box.NewRelay(db, c, outbox.RelayConfig{})
//	err = relay.Run(ctx)
//
// # Guarantees
//
// Every task of a committed transaction is submitted, and none of a transaction that was rolled back. A row is
// removed once its task is on the disks of a majority of the cluster. If a relay dies before it has removed the row,
// the next one submits the task again with the same idempotency key. There is therefore one task per row, as long as
// the cluster knows the key: until ten minutes after the task is removed, which by default is a day after its end, or
// for client.UniqueActive until the task ends. If a relay finds older rows, for example after the database was
// restored from a backup, they are submitted a second time.
//
// Any number of relays may run in parallel; each locks the rows that it takes. Tasks are submitted roughly in the
// order of the rows, but not exactly, because a transaction that commits late has lower ids.
//
// If the cluster refuses a task because it is malformed, too large, or of a type that the relay's key may not submit,
// the others are not held up: its row is kept, with is_refused set and the reason in ASCII, for an operator to
// decide. A task that was refused together with others is submitted by itself before its row is marked. If the key is
// refused for its role or rate, no row is marked, and Run tries again.
//
//	SELECT id, reason FROM claimq_outbox WHERE is_refused;
//	UPDATE claimq_outbox SET is_refused = false WHERE id = 17; -- try it again
//	DELETE FROM claimq_outbox WHERE id = 17;                    -- give it up
package outbox
