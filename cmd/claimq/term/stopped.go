package term

import (
	"errors"
	"io"
)

// ErrStopped is returned when the process was told to stop while it read.
var ErrStopped = errors.New("stopped before all of the input had come")

// UntilStopped returns in, but that its reads end with ErrStopped when the process is told
// to stop: whoever writes to a pipe or a terminal may take as long as they like.
func (a *App) UntilStopped(in io.Reader) io.Reader { return &stoppable{in: in, stopped: a.Stopped} }

// stoppable is a reader that is given up when stopped is closed.
type stoppable struct {
	in      io.Reader
	stopped <-chan struct{}
}

// Read is of io.Reader. The read that is given up goes on, into a buffer of its own, until
// the process ends.
func (s *stoppable) Read(p []byte) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	buffer, done := make([]byte, len(p)), make(chan outcome, 1)
	go func() {
		n, err := s.in.Read(buffer)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return copy(p, buffer[:o.n]), o.err
	case <-s.stopped:
		return 0, ErrStopped
	}
}
