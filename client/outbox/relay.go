package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/claimq/claimq/client"
)

const (
	batchByDefault    = 500
	batchMax          = 1_000
	intervalByDefault = time.Second
	// pauseMax bounds the pause after a failed pass, which starts at the interval and doubles.
	pauseMax = 30 * time.Second
	// reasonMax bounds the stored reason of a refusal, in bytes.
	reasonMax = 2_000
)

// RelayConfig configures a Relay. The zero value is valid.
type RelayConfig struct {
	// Batch limits the rows of a pass, 1 to 1,000. They are locked until their tasks are on the disks of a majority.
	// Default: 500.
	Batch int
	// Interval is the pause of a relay after it found fewer rows than Batch. Default: 1 s.
	Interval time.Duration
	// Logger gets a warning for each failed pass and each refused row. Default: slog.Default().
	Logger *slog.Logger
}

// Relay moves the rows of an outbox to claimq.
type Relay struct {
	o    *Outbox
	db   *sql.DB
	c    *client.Client
	cfg  RelayConfig
	wake chan struct{}
}

// Moved is the outcome of a pass.
type Moved struct {
	Submitted int // rows whose tasks are in the cluster, and which were deleted
	Refused   int // rows that were marked as refused
}

// NewRelay returns a relay between db and the cluster of c. The caller keeps and closes both.
func (o *Outbox) NewRelay(db *sql.DB, c *client.Client, cfg RelayConfig) (*Relay, error) {
	switch {
	case cfg.Batch < 0 || cfg.Batch > batchMax:
		return nil, fmt.Errorf("outbox: Batch is %d, it must be 1 to %d", cfg.Batch, batchMax)
	case cfg.Interval < 0:
		return nil, fmt.Errorf("outbox: Interval is %v, it must be above 0", cfg.Interval)
	}
	if cfg.Batch == 0 {
		cfg.Batch = batchByDefault
	}
	if cfg.Interval == 0 {
		cfg.Interval = intervalByDefault
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Relay{o: o, db: db, c: c, cfg: cfg, wake: make(chan struct{}, 1)}, nil
}

// Wake makes Run look for rows at once if it is waiting for its interval. It does not block.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run moves rows until ctx ends, and returns ctx's cause. If a pass fails, because the database or the cluster is
// away, it is logged and tried again after the interval, doubled each time up to 30 s.
func (r *Relay) Run(ctx context.Context) error {
	pause := r.cfg.Interval
	for {
		moved, err := r.Pass(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.cfg.Logger.WarnContext(ctx, "claimq: outbox: a pass failed", "table", r.o.table, "submitted", moved.Submitted, "again_in", pause, "err", err)
			r.wait(ctx, pause, nil)
			pause = min(2*pause, max(pauseMax, r.cfg.Interval))
			continue
		case moved.Submitted+moved.Refused < r.cfg.Batch:
			r.wait(ctx, r.cfg.Interval, r.wake)
		}
		pause = r.cfg.Interval
	}
}

// wait waits for d, for wake or for the end of ctx.
func (r *Relay) wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// row is a task in the outbox.
type row struct {
	id   int64
	task []byte
}

// Pass moves up to RelayConfig.Batch rows in one transaction, for programs with their own loop. On an error, the rows
// that it concerns do not change.
func (r *Relay) Pass(ctx context.Context) (moved Moved, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return Moved{}, fmt.Errorf("outbox: begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	rows, err := r.take(ctx, tx)
	if err != nil || len(rows) == 0 {
		return Moved{}, err
	}
	v := verdict{refused: map[int64]string{}}
	submitErr := r.submit(ctx, rows, &v)
	if len(v.done) > 0 {
		if _, err := tx.ExecContext(ctx, r.o.remove(v.done)); err != nil {
			return Moved{}, fmt.Errorf("outbox: delete from %s: %w", r.o.table, err)
		}
	}
	for id, reason := range v.refused {
		if _, err := tx.ExecContext(ctx, r.o.refuse(), reason, id); err != nil {
			return Moved{}, fmt.Errorf("outbox: update %s: %w", r.o.table, err)
		}
		r.cfg.Logger.WarnContext(ctx, "claimq: outbox: a task was refused", "table", r.o.table, "id", id, "reason", reason)
	}
	if err := tx.Commit(); err != nil {
		return Moved{}, fmt.Errorf("outbox: commit: %w", err)
	}
	return Moved{Submitted: len(v.done), Refused: len(v.refused)}, submitErr
}

// take locks and reads the oldest rows.
func (r *Relay) take(ctx context.Context, tx *sql.Tx) (taken []row, err error) {
	rows, err := tx.QueryContext(ctx, r.o.oldest(r.cfg.Batch))
	if err != nil {
		return nil, fmt.Errorf("outbox: select from %s: %w", r.o.table, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one row
		if err := rows.Scan(&one.id, &one.task); err != nil {
			return nil, fmt.Errorf("outbox: read row: %w", err)
		}
		taken = append(taken, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("outbox: select from %s: %w", r.o.table, err)
	}
	return taken, nil
}

// verdict is the cluster's answer for each row; rows in neither field have none.
type verdict struct {
	done    []int64          // rows whose tasks are in the cluster
	refused map[int64]string // why the cluster refused the others
}

// submit submits the tasks of the rows. Because a refusal may be due to another task of the same request, and later
// ones are then not sent, these are tried again in halves, until each refused task is alone. err concerns the
// rows that do not change.
func (r *Relay) submit(ctx context.Context, rows []row, v *verdict) (err error) {
	tasks := make([][]byte, len(rows))
	for i := range rows {
		tasks[i] = rows[i].task
	}
	results, _ := r.c.SubmitEncoded(ctx, tasks) // each result has its error
	var again []row
	for i := range results {
		switch one := results[i].Err; {
		case one == nil:
			v.done = append(v.done, rows[i].id)
		case !isOfTask(one):
			err = one
		case len(rows) > 1:
			again = append(again, rows[i])
		case errors.Is(one, client.ErrOutcomeUnknown): // an earlier try may have succeeded
			err = one
		default:
			v.refused[rows[i].id] = reasonOf(one)
		}
	}
	if err != nil || len(again) == 0 {
		return err
	}
	half := (len(again) + 1) / 2
	if err := r.submit(ctx, again[:half], v); err != nil || half == len(again) {
		return err
	}
	return r.submit(ctx, again[half:], v)
}

// reasonOf returns the error's text in ASCII, so that it can be stored in a column of any encoding; a row that could
// not be marked would hold up the others.
func reasonOf(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, err.Error())
	return text[:min(len(text), reasonMax)]
}

// isOfTask reports whether err says that the cluster, or a proxy in front of it, refuses one of the tasks, rather
// than all tasks for now or with this key.
func isOfTask(err error) bool {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Status {
	case http.StatusRequestEntityTooLarge: // a proxy returns this too, for the whole request
		return true
	case http.StatusBadRequest:
		return !errors.Is(err, client.ErrOutcomeUnknown)
	case http.StatusForbidden:
		var what struct {
			Field string `json:"field"`
		}
		_ = json.Unmarshal(refusal.Details, &what) // a body that is not JSON names no field
		return what.Field == "task_type" && !errors.Is(err, client.ErrOutcomeUnknown)
	}
	return false
}
