// Package outbox submits tasks in the transaction of an application's own database: the
// task is a row of a table there, which is committed with the rest or not at all, and a
// Relay moves the rows to claimq. It goes over database/sql, with any driver of
// PostgreSQL (9.5 or later), MySQL (8.0.1) or MariaDB (10.6).
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
// # What it promises
//
// Every task of a transaction that was committed is submitted, and none of one that was
// rolled back. A row is removed once its task is on the disks of a majority of the
// cluster; a relay that dies before it has removed it leaves it for the next, which
// submits it again with the same idempotency key. So there is one task a row, as long as
// the cluster knows the key: until the task is removed, a day after its end unless its
// retention says otherwise, and ten minutes more; of a task that is client.UniqueActive
// until it ends. A relay that finds rows that old, after a restore of the database from a
// backup say, makes second tasks of them.
//
// Any number of relays may run beside each other: each takes rows that no other has. The
// order in which tasks are submitted is about that of the rows, but not exactly: a
// transaction that commits late has lower ids.
//
// A task that the cluster refuses, for it is malformed, too large, or of a type that the
// relay's key may not submit, does not hold up the others: its row stays, with is_refused and
// the reason in ASCII, until somebody has looked. What is refused with others is submitted
// again by itself before that is said of it. A refusal of the key as a whole, for its role or
// rate, is about no row: all are left as they are, and Run tries again.
//
//	SELECT id, reason FROM claimq_outbox WHERE is_refused;
//	UPDATE claimq_outbox SET is_refused = false WHERE id = 17; -- try it again
//	DELETE FROM claimq_outbox WHERE id = 17;                    -- give it up
package outbox
