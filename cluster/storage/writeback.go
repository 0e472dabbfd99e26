package storage

import "os"

const (
	// WriteBackStep is how many bytes a file grows by before they are sent to its
	// disk. More at once is felt by the log's own writes.
	WriteBackStep = 64 << 10
	// writeBackMax bounds the bytes of a file that are sent and not there yet, so
	// that a slow disk still has enough to do.
	writeBackMax = 1 << 20
)

// writeBack sends what is written to the end of a large file to its disk while the
// file is being written. The system alone keeps all of it in memory until a sync or
// for half a minute, and then sends hundreds of megabytes at once: the log's next
// sync waits behind them. What it does is no sync: the file may not be durable, and
// has to be synced at the end, which then finds little left to do. Where the system
// does not offer it, it does nothing. Not safe for concurrent use.
type writeBack struct {
	// send begins to write n bytes of the file at off to its disk; await waits until
	// they have been written there.
	send, await func(off, n int64) error

	written int64 // bytes that the file was given
	sent    int64 // of them, in whole steps; at most a step and what is not in the file yet behind written
	waited  int64 // of them; at most writeBackMax behind sent
}

func newWriteBack(f *os.File) writeBack {
	return writeBack{
		send:  func(off, n int64) error { return sendData(f, off, n) },
		await: func(off, n int64) error { return awaitData(f, off, n) },
	}
}

// wrote notes that the file was given n more bytes, of all of which the last slack
// are perhaps not in it yet. Errors are of the disk.
func (w *writeBack) wrote(n, slack int) error {
	w.written += int64(n)
	for w.written-int64(slack)-w.sent >= WriteBackStep {
		if err := w.send(w.sent, WriteBackStep); err != nil {
			return err
		}
		w.sent += WriteBackStep
		if w.sent-w.waited <= writeBackMax {
			continue
		}
		if err := w.await(w.waited, WriteBackStep); err != nil {
			return err
		}
		w.waited += WriteBackStep
	}
	return nil
}
