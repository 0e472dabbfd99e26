package trail

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// retryMin and retryMax bound the pause after an error of the disk, doubled for each error in a row.
	retryMin = time.Second
	retryMax = 30 * time.Second
	// syncInterval and syncBytes bound what a loss of power can remove from the file's end. Nothing is lost by that,
	// because the trail still has it.
	syncInterval = 5 * time.Second
	syncBytes    = 8 << 20
	// closeMax bounds how long Close waits for the disk.
	closeMax = 5 * time.Second
	// hungAfter is the time after which a disk that does not answer is logged; hungLook is the interval of that
	// check.
	hungAfter = 10 * time.Second
	hungLook  = time.Second
)

// Events of an audit file that are not events of the trail.
const (
	lineGone      = "events_gone"
	lineContinued = "continued"
)

// AuditConfig configures OpenAudit.
type AuditConfig struct {
	// Path names the file.
	Path string
	// Node is the node whose trail is written.
	Node Source
	// Logger receives errors of the disk. nil: none.
	Logger hclog.Logger
}

// Audit writes this node's trail to a file: each event as one line of JSON in the form of GET /api/events, in order
// and exactly once. It continues where the file ends. Requests with known keys that this node has denied are written
// in between. Its methods are safe for concurrent use.
type Audit struct {
	cfg     AuditConfig
	stop    context.CancelFunc
	running sync.WaitGroup
	ended   sync.Once
	denials denials

	closeWait time.Duration // closeMax, except in tests
	busySince atomic.Int64  // Unix time in ns since which the disk has not answered; 0: no request to it is under way

	mu       sync.Mutex // guards what follows
	file     *auditFile // nil: it could not be written, and will be opened again
	at       event.Pos
	unsynced int       // bytes
	synced   time.Time // when everything was last synced
}

// OpenAudit opens or creates the file, cuts off a line that a crash left incomplete, and writes events until Close. It
// fails if the file cannot be used; later errors are logged and retried.
func OpenAudit(cfg AuditConfig) (*Audit, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Audit{cfg: cfg, stop: cancel, denials: denials{wake: make(chan struct{}, 1)}, closeWait: closeMax, at: event.Pos{Sub: wire.WholeEntry}}
	if err := a.openLocked(); err != nil {
		cancel()
		return nil, fmt.Errorf("open audit_file: %w", err)
	}
	a.running.Go(func() { a.run(ctx) })
	a.running.Go(func() { a.runDenials(ctx) })
	a.running.Go(func() { a.watch(ctx) })
	return a, nil
}

// Reopen closes the file and opens the one that has its name now, which is a new one after the file was moved away.
// The first line of a new file names the last event of the old one.
func (a *Audit) Reopen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked()
	if err := a.openLocked(); err != nil {
		a.cfg.Logger.Error("the audit file cannot be opened; it is tried again", "path", a.cfg.Path, "error", err)
		return
	}
	a.cfg.Logger.Info("reopened the audit file", "path", a.cfg.Path)
}

// Close stops writing and closes the file. It may be called twice. If the disk does not answer, Close gives up after
// closeMax; missing events are written after the next start.
func (a *Audit) Close() {
	a.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.running.Wait()
		a.ended.Do(func() { a.writeDenials(time.Now(), true) })
		a.mu.Lock()
		defer a.mu.Unlock()
		a.closeLocked()
	}()
	timer := time.NewTimer(a.closeWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		a.cfg.Logger.Error("the disk under the audit file does not answer: the file is left as it is", "path", a.cfg.Path)
	}
}

// watch logs, until ctx ends, when the disk does not answer.
func (a *Audit) watch(ctx context.Context) {
	var told int64
	for pause.For(ctx, hungLook) {
		since := a.busySince.Load()
		if since == 0 || since == told || time.Since(time.Unix(0, since)) < hungAfter {
			continue
		}
		told = since
		a.cfg.Logger.Error("the disk under the audit file does not answer: events wait in the trail", "path", a.cfg.Path, "since", time.Unix(0, since))
	}
}

// busy notes that a request to the disk is under way until answered is called.
func (a *Audit) busy() (answered func()) {
	a.busySince.Store(time.Now().UnixNano())
	return func() { a.busySince.Store(0) }
}

// openLocked opens the file and continues at its end. A new file continues where the last one ended, if there was
// one, and says so.
func (a *Audit) openLocked() error {
	defer a.busy()()
	f, err := openAuditFile(a.cfg.Path)
	if err != nil {
		return err
	}
	if f.cut > 0 {
		a.cfg.Logger.Warn("took a broken end off the audit file", "path", a.cfg.Path, "bytes", f.cut)
	}
	switch {
	case !f.empty:
		a.at = f.at
	case a.at.Index > 0:
		line := appendNote(nil, a.at, time.Now().UnixMilli(), lineContinued, "the file before ended with this place")
		if err := f.write(line); err != nil {
			return errors.Join(err, f.close())
		}
	}
	a.file, a.unsynced, a.synced = f, 0, time.Now()
	return nil
}

func (a *Audit) closeLocked() {
	if a.file == nil {
		return
	}
	if err := a.file.close(); err != nil {
		a.cfg.Logger.Error("the audit file was not closed cleanly", "path", a.cfg.Path, "error", err)
	}
	a.file = nil
}

// run writes until ctx ends.
func (a *Audit) run(ctx context.Context) {
	retry, failing := retryMin, false
	for ctx.Err() == nil {
		more, err := a.step(ctx)
		pause := LookInterval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing || retry == retryMax {
				a.cfg.Logger.Error("the audit file is not written; it is tried again", "path", a.cfg.Path, "error", err)
			}
			failing, pause = true, retry
			retry = min(2*retry, retryMax)
		case failing:
			a.cfg.Logger.Info("the audit file is written again", "path", a.cfg.Path)
			retry, failing = retryMin, false
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// step waits for events, at most for syncInterval, and writes some. more says that there are others. It returns errors
// of the disk.
func (a *Audit) step(ctx context.Context) (more bool, err error) {
	after, err := a.place()
	if err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, syncInterval)
	err = a.cfg.Node.WaitEvent(wait, after)
	cancel()
	if err != nil { // no new events, or the node is stopping
		return false, errors.Join(a.sync(), a.beyond(ctx, after))
	}
	var page event.Page
	var now fsm.Stamp
	_, err = a.cfg.Node.ReadStale(ctx, 0, func(m *fsm.Machine, stamp fsm.Stamp) {
		page, now = m.Events(event.Query{After: after, Limit: PageMax}), stamp
	})
	if err != nil {
		return false, nil
	}
	var lines []byte
	if page.Gone {
		page.Next = placeBefore(page.Oldest)
		lines = appendNote(nil, page.Next, now.T, lineGone, "events after "+string(AppendPlace(nil, after))+" and up to this place are kept no more")
	}
	for i := range page.Events {
		lines = append(AppendEvent(lines, &page.Events[i]), '\n')
	}
	return page.More || page.Gone, a.append(after, lines, page.Next)
}

// beyond returns an error if the file ends with a place that the trail has not reached, because events until that
// place would be missing.
func (a *Audit) beyond(ctx context.Context, after event.Pos) error {
	ctx, cancel := context.WithTimeout(ctx, syncInterval)
	defer cancel()
	ahead, at, err := IsAhead(ctx, a.cfg.Node, after)
	if err != nil || !ahead { // a node that cannot tell yet is asked again
		return nil
	}
	return fmt.Errorf("it ends with the place %s, which the trail has not come to (%s): it is another cluster's, or of a state that was lost; move it away, then send SIGHUP",
		AppendPlace(nil, after), AppendPlace(nil, at))
}

// place returns where to continue, once the file is open.
func (a *Audit) place() (event.Pos, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		return a.at, nil
	}
	err := a.openLocked()
	return a.at, err
}

// append writes lines, which cover the trail from after to next. If the file does not end at after, because it was
// replaced, it does nothing.
func (a *Audit) append(after event.Pos, lines []byte, next event.Pos) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil || a.at != after {
		return nil
	}
	if err := a.writeLocked(lines); err != nil {
		return err
	}
	a.at = next
	return a.syncDueLocked()
}

// writeLocked writes lines. On an error it closes the file; opening it shows how much was written.
func (a *Audit) writeLocked(lines []byte) error {
	defer a.busy()()
	if err := a.file.write(lines); err != nil {
		a.closeLocked()
		return err
	}
	a.unsynced += len(lines)
	return nil
}

// syncDueLocked syncs if enough is unsynced, or for long enough.
func (a *Audit) syncDueLocked() error {
	if a.unsynced >= syncBytes || time.Since(a.synced) >= syncInterval {
		return a.syncLocked()
	}
	return nil
}

// sync makes everything written durable.
func (a *Audit) sync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.syncLocked()
}

func (a *Audit) syncLocked() error {
	if a.file == nil {
		return nil
	}
	a.synced = time.Now()
	if a.unsynced == 0 {
		return nil
	}
	a.unsynced = 0
	defer a.busy()()
	if err := a.file.sync(); err != nil {
		a.closeLocked()
		return err
	}
	return nil
}

// appendNote appends a line that is not an event of the trail.
func appendNote(b []byte, at event.Pos, t int64, kind, message string) []byte {
	b = AppendEventHead(b, &event.Event{Pos: at, T: t})
	b = append(append(b, kind...), `","worker_id":null,"claim_token":null,"attempt":null,"message":`...)
	return append(jsonout.String(b, message), '}', '\n')
}
