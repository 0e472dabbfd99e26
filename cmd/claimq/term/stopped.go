package term

import (
	"errors"
	"io"
)

// ErrStopped is returned when the process was told to stop while it read.
var ErrStopped = errors.New("stopped before all of the input had come")

// UntilStopped returns a reader like in, whose reads end with ErrStopped when the process is told to stop. Without it
// a pipe or a terminal without input would keep the process running.
func (a *App) UntilStopped(in io.Reader) io.Reader { return &stoppable{in: in, stopped: a.Stopped} }

// stoppable is a reader that gives up when stopped is closed.
type stoppable struct {
	in      io.Reader
	stopped <-chan struct{}
}

// Read implements io.Reader. After it gives up, the read goes on in its own buffer until the process ends.
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
