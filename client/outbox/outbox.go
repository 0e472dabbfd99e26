package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/claimq/claimq/client"
)

// DefaultTable is the table's name unless another is given.
const DefaultTable = "claimq_outbox"

// submitMax bounds the tasks of one Submit, as each is a parameter of its statement.
const submitMax = 1_000

// tableName is what a table may be called: the name goes into statements as it is.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// Outbox is a table of tasks that are to be submitted. It is safe for concurrent use.
type Outbox struct {
	dialect Dialect
	table   string
}

// Executor is what Submit needs of a transaction: a *sql.Tx, or what wraps one.
type Executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// New returns the outbox in the table, which need not exist yet (Schema). An empty name
// is DefaultTable; others are of letters, digits and underscores, with a schema before a
// dot if need be.
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

// Submit has tasks submitted once tx is committed: it inserts them into the table, up to
// 1,000. A task without an idempotency key gets a random one. The tasks carry the trace
// context of ctx. A task that the client can see to be malformed is refused here, and
// nothing is inserted.
//
// Once the commit has returned, Relay.Wake shortens the wait until a relay in this process
// looks.
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
