package storage

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/internal/pause"
)

const (
	// removeStep is how many bytes of a file are given back at once: the file system
	// holds up the log's next sync for as long as that takes. Beside the removal of
	// three files of 400 MB each on one disk syncs took at most 100 ms in one go, 25 ms
	// in steps of 16 MiB, and 5 to 19 ms in steps of 1 to 8.
	removeStep = 4 << 20
	// removePause is how long nothing is given back after each step. So it is 100 MiB a
	// second at most, four times what a snapshot is written at.
	removePause = 40 * time.Millisecond
)

// remover removes large files that nobody needs any more in small steps, one after
// the other, in a goroutine of its own: all of a file at once is felt by every
// request. Who hands it a file or a folder has seen to it that nobody takes what is
// left of it for more than that, also after a crash, and that a start removes it. It is
// safe for concurrent use.
type remover struct {
	last    func(path string) error // removes what is left of one
	logger  hclog.Logger
	waiting chan string
	cancel  context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended
}

// newRemover starts a remover for which at most waitingMax files wait; last removes
// what is left of each. The caller closes it.
func newRemover(waitingMax int, last func(path string) error, logger hclog.Logger) *remover {
	ctx, cancel := context.WithCancel(context.Background())
	r := &remover{last: last, logger: logger, waiting: make(chan string, waitingMax), cancel: cancel, done: make(chan struct{})}
	go r.run(ctx)
	return r
}

// remove removes the file or the folder at path, later. If as many as may wait do, it
// is removed now, and at once: better slow requests than a full disk.
func (r *remover) remove(path string) {
	select {
	case r.waiting <- path:
	default:
		r.note(path, r.last(path))
	}
}

// close ends the goroutine and waits for it. What it has not removed yet stays.
func (r *remover) close() {
	r.cancel()
	<-r.done
}

func (r *remover) run(ctx context.Context) {
	defer close(r.done)
	for {
		select {
		case <-ctx.Done():
			return
		case path := <-r.waiting:
			shorten(ctx, path)
			if ctx.Err() == nil {
				r.note(path, r.last(path))
			}
			pause.For(ctx, removePause)
		}
	}
}

// note logs why something is left. Nothing depends on it: the next start tries again.
func (r *remover) note(path string, err error) {
	if err != nil {
		r.logger.Warn("what is not needed any more was not removed", "path", path, "error", err)
	}
}

// shorten cuts the files at or below path to a step at most, step by step. What it
// cannot cut is left as it is: one may remove a file that one may not write.
func shorten(ctx context.Context, path string) {
	_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		for size := (info.Size() - 1) / removeStep * removeStep; size > 0; size -= removeStep {
			if os.Truncate(path, size) != nil {
				return nil
			}
			if !pause.For(ctx, removePause) {
				return ctx.Err()
			}
		}
		return nil
	})
}
