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
	// removeStep is the number of bytes of a file that are freed at once. It is small
	// because the file system delays the log's next sync for that time. During the removal
	// of three files of 400 MB each on one disk, syncs took up to 100 ms when each was
	// removed at once, 25 ms in steps of 16 MiB, and 5 to 19 ms in steps of 1 to 8.
	removeStep = 4 << 20
	// removePause is the pause after each step. So at most 100 MiB a second are freed, four
	// times the rate at which a snapshot is written.
	removePause = 40 * time.Millisecond
)

// remover removes large files in small steps, one file after the other, on its own
// goroutine, because removing a file at once delays every request. The caller ensures that a
// partly removed file or folder is never mistaken for a whole one, even after a crash, and
// that the next start removes it. It is safe for concurrent use.
type remover struct {
	removeRest func(path string) error // removes a file or folder that has been shortened
	logger     hclog.Logger
	waiting    chan string
	cancel     context.CancelFunc
	done       chan struct{} // closed when the goroutine has ended
}

// newRemover starts a remover for which at most waitingMax files wait; removeRest removes each
// once it has been shortened. The caller must close it.
func newRemover(waitingMax int, removeRest func(path string) error, logger hclog.Logger) *remover {
	ctx, cancel := context.WithCancel(context.Background())
	r := &remover{removeRest: removeRest, logger: logger, waiting: make(chan string, waitingMax), cancel: cancel, done: make(chan struct{})}
	go r.run(ctx)
	return r
}

// remove removes the file or folder at path later. If too many are waiting, it is removed
// immediately, because slow requests are better than a full disk.
func (r *remover) remove(path string) {
	select {
	case r.waiting <- path:
	default:
		r.note(path, r.removeRest(path))
	}
}

// close ends the goroutine and waits for it. Files that it has not removed yet stay.
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
				r.note(path, r.removeRest(path))
			}
			pause.For(ctx, removePause)
		}
	}
}

// note logs an error of a removal. It does no harm, because the next start tries again.
func (r *remover) note(path string, err error) {
	if err != nil {
		r.logger.Warn("what is not needed any more was not removed", "path", path, "error", err)
	}
}

// shorten truncates the files at or below path in steps, to at most one step. Files that
// cannot be truncated are skipped, because a file may be removable without being writable.
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
