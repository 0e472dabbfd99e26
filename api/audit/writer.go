package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/trail"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// retryMin and retryMax bound the pause after an error of the disk;
	// each error in a row doubles it.
	retryMin = time.Second
	retryMax = 30 * time.Second
	// syncInterval and syncBytes bound what a loss of power takes from
	// the file's end. It costs nothing but time: the trail still has it.
	syncInterval = 5 * time.Second
	syncBytes    = 8 << 20
	// closeMax bounds how long a stop waits for the disk.
	closeMax = 5 * time.Second
	// hungAfter is how long the disk may take before the log tells of it; hungLook how often
	// that is looked at.
	hungAfter = 10 * time.Second
	hungLook  = time.Second
)

// The lines of an audit file that are no events of the trail.
const (
	lineGone      = "events_gone"
	lineContinued = "continued"
)

// Config is what Open needs.
type Config struct {
	// Path names the file.
	Path string
	// Node is whose trail is written.
	Node trail.Source
	// Logger is told of errors of the disk. nil: nobody.
	Logger hclog.Logger
}

// Writer writes this node's trail to a file: each event as one line of JSON in
// the shape of GET /api/events, in order, each once. It goes on where the file
// ends. Between them it writes the requests with known keys that this node has
// denied. Its methods are safe for concurrent use.
type Writer struct {
	cfg     Config
	stop    context.CancelFunc
	running sync.WaitGroup
	ended   sync.Once
	denials denials

	closeWait time.Duration // closeMax, but in tests
	busySince atomic.Int64  // Unix time in ns since when the disk has not answered; 0: it is not asked

	mu       sync.Mutex // guards what follows
	file     *file      // nil: it could not be written, and is opened again
	at       event.Pos
	unsynced int       // bytes
	synced   time.Time // when nothing was unsynced last
}

// Open opens the file, which it makes if there is none, takes off a line
// that a crash cut, and writes what happens until Close. It fails if the file
// cannot be used; later errors are logged and tried again.
func Open(cfg Config) (*Writer, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Writer{cfg: cfg, stop: cancel, denials: denials{wake: make(chan struct{}, 1)}, closeWait: closeMax, at: event.Pos{Sub: wire.WholeEntry}}
	if err := a.openLocked(); err != nil {
		cancel()
		return nil, fmt.Errorf("open audit file: %w", err)
	}
	a.running.Go(func() { a.run(ctx) })
	a.running.Go(func() { a.runDenials(ctx) })
	a.running.Go(func() { a.watch(ctx) })
	return a, nil
}

// Reopen closes the file and opens what has its name now: after the file was
// moved away, a new one. Its first line then names the last event of the old one.
func (a *Writer) Reopen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeLocked()
	if err := a.openLocked(); err != nil {
		a.cfg.Logger.Error("the audit file cannot be opened; it is tried again", "path", a.cfg.Path, "error", err)
		return
	}
	a.cfg.Logger.Info("reopened the audit file", "path", a.cfg.Path)
}

// Close ends the writing and closes the file. It is safe twice. Where the disk does not answer
// it gives up after closeMax: what is missing is written after the next start.
func (a *Writer) Close() {
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

// watch tells, until ctx ends, of a disk that does not answer.
func (a *Writer) watch(ctx context.Context) {
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

// busy notes that the disk is asked, until answered is called.
func (a *Writer) busy() (answered func()) {
	a.busySince.Store(time.Now().UnixNano())
	return func() { a.busySince.Store(0) }
}

// openLocked opens the file and takes its end for where to go on. A new file
// begins where the last one ended, if there was one, and says so.
func (a *Writer) openLocked() error {
	defer a.busy()()
	f, err := openFile(a.cfg.Path)
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

func (a *Writer) closeLocked() {
	if a.file == nil {
		return
	}
	if err := a.file.close(); err != nil {
		a.cfg.Logger.Error("the audit file was not closed cleanly", "path", a.cfg.Path, "error", err)
	}
	a.file = nil
}

// run writes until ctx ends.
func (a *Writer) run(ctx context.Context) {
	retry, failing := retryMin, false
	for ctx.Err() == nil {
		more, err := a.step(ctx)
		pause := trail.LookInterval
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

// step waits for events, for syncInterval at most, and writes some. more:
// there are others. Errors are those of the disk.
func (a *Writer) step(ctx context.Context) (more bool, err error) {
	after, err := a.place()
	if err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, syncInterval)
	err = a.cfg.Node.WaitEvent(wait, after)
	cancel()
	if err != nil { // nothing new, or a node that stops
		return false, errors.Join(a.sync(), a.beyond(ctx, after))
	}
	var page event.Page
	var now fsm.Stamp
	_, err = a.cfg.Node.ReadStale(ctx, 0, func(m *fsm.Machine, stamp fsm.Stamp) {
		page, now = m.Events(event.Query{After: after, Limit: trail.PageMax}), stamp
	})
	if err != nil {
		return false, nil
	}
	var lines []byte
	if page.Gone {
		page.Next = trail.Before(page.Oldest)
		lines = appendNote(nil, page.Next, now.T, lineGone, "events after "+string(trail.AppendPlace(nil, after))+" and up to this place are kept no more")
	}
	for i := range page.Events {
		lines = append(trail.AppendEvent(lines, &page.Events[i]), '\n')
	}
	return page.More || page.Gone, a.append(after, lines, page.Next)
}

// beyond returns an error if the file ends with a place that the trail has not come to: what
// happens would be missing from it until the trail has.
func (a *Writer) beyond(ctx context.Context, after event.Pos) error {
	ctx, cancel := context.WithTimeout(ctx, syncInterval)
	defer cancel()
	ahead, at, err := trail.IsAhead(ctx, a.cfg.Node, after)
	if err != nil || !ahead { // a node that cannot tell yet is asked again
		return nil
	}
	return fmt.Errorf("it ends with the place %s, which the trail has not come to (%s): it is another cluster's, or of a state that was lost; move it away, then send SIGHUP",
		trail.AppendPlace(nil, after), trail.AppendPlace(nil, at))
}

// place returns where to go on, once the file is open.
func (a *Writer) place() (event.Pos, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		return a.at, nil
	}
	err := a.openLocked()
	return a.at, err
}

// append writes lines, which follow after, up to next. If the file is another
// than the one that ended there, it does nothing.
func (a *Writer) append(after event.Pos, lines []byte, next event.Pos) error {
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

// writeLocked writes lines. On an error the file is closed: what of them is in it shows
// when it is opened.
func (a *Writer) writeLocked(lines []byte) error {
	defer a.busy()()
	if err := a.file.write(lines); err != nil {
		a.closeLocked()
		return err
	}
	a.unsynced += len(lines)
	return nil
}

// syncDueLocked is syncLocked if so much or so long ago is unsynced.
func (a *Writer) syncDueLocked() error {
	if a.unsynced >= syncBytes || time.Since(a.synced) >= syncInterval {
		return a.syncLocked()
	}
	return nil
}

// sync makes what is written durable.
func (a *Writer) sync() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.syncLocked()
}

func (a *Writer) syncLocked() error {
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

// appendNote appends a line that is no event of the trail.
func appendNote(b []byte, at event.Pos, t int64, kind, message string) []byte {
	b = trail.AppendEventHead(b, &event.Event{Pos: at, T: t})
	b = append(append(b, kind...), `","worker_id":null,"claim_token":null,"attempt":null,"message":`...)
	return append(jsonout.String(b, message), '}', '\n')
}
