package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/claimq/claimq/client"
)

// DefaultTable is the default name of the table.
const DefaultTable = "claimq_outbox"

// submitMax bounds the tasks of one Submit, because each is a parameter of its statement.
const submitMax = 1_000

// tableName restricts the names of tables, because they become part of statements.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// Outbox is a table of tasks to submit. It is safe for concurrent use.
type Outbox struct {
	dialect Dialect
	table   string
}

// Executor is the part of a transaction that Submit needs: a *sql.Tx, or a wrapper of one.
type Executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// New returns the outbox in the table, which need not exist yet (see Schema). An empty name means DefaultTable;
// others consist of letters, digits and underscores, optionally with a schema and a dot in front.
func New(d Dialect, table string) (*Outbox, error) {
	if table == "" {
		table = DefaultTable
	}
	if d != Postgres && d != MySQL {
		return nil, fmt.Errorf("outbox: dialect is %d, it must be Postgres or MySQL", int(d))
	}
	if !tableName.MatchString(table) {
		return nil, fmt.Errorf("outbox: table is %q, it must be a name of up to 63 letters, digits and underscores, or two with a dot between them", table)
	}
	return &Outbox{dialect: d, table: table}, nil
}

// Submit inserts tasks, up to 1,000, into the table, so that they are submitted once tx is committed. A task without
// an idempotency key gets a random one. The tasks carry the trace context of ctx. If the client can tell that a task
// is malformed, nothing is inserted and an error is returned.
//
// After the commit, call Relay.Wake to submit them without waiting for the interval of a relay in this process.
func (o *Outbox) Submit(ctx context.Context, tx Executor, tasks ...client.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	if len(tasks) > submitMax {
		return fmt.Errorf("outbox: %d tasks are submitted at once, it must be at most %d", len(tasks), submitMax)
	}
	rows := make([]any, len(tasks))
	for i := range tasks {
		body, err := client.EncodeTask(ctx, tasks[i])
		if err != nil {
			return fmt.Errorf("outbox: task %d of %d: %w", i+1, len(tasks), err)
		}
		rows[i] = body
	}
	if _, err := tx.ExecContext(ctx, o.insert(len(tasks)), rows...); err != nil {
		return fmt.Errorf("outbox: insert into %s: %w", o.table, err)
	}
	return nil
}
