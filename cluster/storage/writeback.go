package storage

import "os"

const (
	// WriteBackStep is the number of bytes by which a file grows before they are sent to
	// its disk. Larger amounts delay the log's own writes.
	WriteBackStep = 64 << 10
	// writeBackMax bounds the bytes of a file that are sent but not on disk yet, while
	// leaving a slow disk enough to do.
	writeBackMax = 1 << 20
)

// writeBack sends the data appended to a large file to its disk while the file is being
// written. The system by itself would keep all of it in memory until a sync or for half a
// minute, and then send hundreds of megabytes at once, for which the log's next sync would
// wait. It is not a sync: the file must still be synced at the end, which then finds little
// left to do. On systems without the call it does nothing. Not safe for concurrent use.
type writeBack struct {
	// send starts writing n bytes of the file at off to its disk; await waits until they
	// have been written there.
	send, await func(off, n int64) error

	written int64 // bytes that were appended
	sent    int64 // bytes, in whole steps, of which send was called
	waited  int64 // bytes of which await has returned; at most writeBackMax behind sent
}

func newWriteBack(f *os.File) writeBack {
	return writeBack{
		send:  func(off, n int64) error { return sendData(f, off, n) },
		await: func(off, n int64) error { return awaitData(f, off, n) },
	}
}

// wrote records that n bytes were appended, of which the last slack bytes may still be in a
// buffer of the process. It returns errors of the disk.
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
