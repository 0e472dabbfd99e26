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
	// pauseMax bounds the wait after a pass that failed, doubled from the interval on.
	pauseMax = 30 * time.Second
	// reasonMax is how many bytes of a refusal are kept.
	reasonMax = 2_000
)

// RelayConfig is how a Relay works. The zero value is good.
type RelayConfig struct {
	// Batch is how many rows a pass takes at most, 1 to 1,000. They are locked until their
	// tasks are on the disks of a majority. Default: 500.
	Batch int
	// Interval is how long a relay waits that has found few rows or none, above 0.
	// Default: 1 s.
	Interval time.Duration
	// Logger gets a warning for each pass that failed and each row that was refused.
	// Default: slog.Default().
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

// Moved is what a pass did.
type Moved struct {
	Submitted int // rows whose tasks are in the cluster, and which are gone
	Refused   int // rows that were marked as refused
}

// NewRelay returns a relay between db and the cluster of c, both of which stay its
// caller's.
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

// Wake ends the wait of Run, if it waits for its interval. It does not block.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run moves rows until ctx ends, and returns why that did. A pass that fails, as the
// database or the cluster is away, is logged and tried again after the interval, doubled
// each time up to 30 s.
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

// row is one task of the outbox.
type row struct {
	id   int64
	task []byte
}

// Pass moves up to RelayConfig.Batch rows, in a transaction of its own: for programs that
// have their own loop. Rows of an error were left as they are.
func (r *Relay) Pass(ctx context.Context) (moved Moved, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return Moved{}, fmt.Errorf("outbox: begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
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

// take locks the oldest rows and reads them.
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

// verdict is what the cluster said of rows; of those in neither it has said nothing.
type verdict struct {
	done    []int64          // whose tasks are in the cluster
	refused map[int64]string // why the cluster does not take others
}

// submit submits the tasks of the rows. One that is refused may be for another's sake in
// its request, and one behind that is not sent: they go again in halves, until each is
// alone with what is said of it. err is about the rows that are left as they were.
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
		case errors.Is(one, client.ErrOutcomeUnknown): // an earlier try may have been taken
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

// reasonOf returns the error's text in ASCII: a column takes it in whatever encoding it
// has, and a row that could not be put aside would hold up the others.
func reasonOf(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, err.Error())
	return text[:min(len(text), reasonMax)]
}

// isOfTask reports whether err says that the cluster, or a proxy before it, does not take one
// of the tasks, rather than that it takes none now, or none by this key.
func isOfTask(err error) bool {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Status {
	case http.StatusRequestEntityTooLarge: // a proxy says so, too, of the whole request
		return true
	case http.StatusBadRequest:
		return !errors.Is(err, client.ErrOutcomeUnknown)
	case http.StatusForbidden:
		var what struct {
			Field string `json:"field"`
		}
		_ = json.Unmarshal(refusal.Details, &what) // what is no JSON names no field
		return what.Field == "task_type" && !errors.Is(err, client.ErrOutcomeUnknown)
	}
	return false
}
