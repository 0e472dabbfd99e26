package top

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// These are written to the terminal when the view begins and ends: the alternate screen, without a cursor and without
// line wrap.
const (
	enterScreen = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"
)

// size returns a terminal's columns and rows, or 80 and 24 if it does not report them.
func size(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// terminal is in raw mode from enter to leave. One goroutine uses it, and another one reads the keys.
type terminal struct {
	in, out *os.File
	typed   chan key
	gone    chan error // why no more keys come; buffered for one

	saved   unix.Termios
	stop    chan struct{} // closed by leave; nil: not entered
	reading sync.WaitGroup
}

func newTerminal(in, out *os.File) *terminal {
	return &terminal{in: in, out: out, typed: make(chan key), gone: make(chan error, 1)}
}

// enter saves the terminal's state, sets raw mode and reads keys until leave.
func (t *terminal) enter() error {
	saved, err := unix.IoctlGetTermios(int(t.in.Fd()), getTermios)
	if err != nil {
		return fmt.Errorf("ask the terminal for its settings: %w", err)
	}
	raw := *saved
	raw.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INPCK | unix.ISTRIP | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN | unix.ISIG
	raw.Cflag |= unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 0
	if err := unix.IoctlSetTermios(int(t.in.Fd()), setTermios, &raw); err != nil {
		return fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	t.saved, t.stop = *saved, make(chan struct{})
	t.reading.Go(t.read)
	_, err = t.out.WriteString(enterScreen)
	return err
}

// leave restores the terminal. When it returns, reading has ended. A second call does nothing.
func (t *terminal) leave() error {
	if t.stop == nil {
		return nil
	}
	close(t.stop)
	t.reading.Wait()
	t.stop = nil
	_, err := t.out.WriteString(leaveScreen)
	return errors.Join(err, unix.IoctlSetTermios(int(t.in.Fd()), setTermios, &t.saved))
}

// keyWait is the interval at which the reader checks whether it must end. It is also the longest time for a sequence
// to be completed.
const keyWait = 200 * time.Millisecond

// read sends the typed keys until stop is closed or the terminal is gone.
func (t *terminal) read() {
	defer func() {
		if p := recover(); p != nil {
			t.fail(fmt.Errorf("reading keys: %v", p))
		}
	}()
	buffer := make([]byte, 256)
	var rest []byte
	for {
		select {
		case <-t.stop:
			return
		default:
		}
		n, err := t.readSome(buffer)
		if err != nil {
			t.fail(err)
			return
		}
		var pressed []key
		if n == 0 && len(rest) > 0 { // the rest of it does not come
			pressed, rest = []key{keyEscape}, nil
		} else {
			pressed, rest = parseKeys(append(rest, buffer[:n]...))
		}
		for _, k := range pressed {
			select {
			case t.typed <- k:
			case <-t.stop:
				return
			}
		}
	}
}

func (t *terminal) fail(err error) {
	select {
	case t.gone <- err:
	default: // the first one is enough
	}
}

// readSome reads what is available and waits at most keyWait; 0 means nothing was. It asks before it reads, because
// another program that sets the terminal, such as a shell, may make reads wait.
func (t *terminal) readSome(buffer []byte) (int, error) {
	fd := int(t.in.Fd())
	var set unix.FdSet
	set.Set(fd)
	wait := unix.NsecToTimeval(keyWait.Nanoseconds())
	ready, err := unix.Select(fd+1, &set, nil, nil, &wait)
	if err == nil && ready == 0 {
		return 0, nil
	}
	n := 0
	if err == nil {
		n, err = unix.Read(fd, buffer)
	}
	switch {
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the terminal: %w", err)
	case n <= 0: // select reported input, so this is the end
		return 0, errHungUp
	}
	return n, nil
}

// errHungUp is returned when the terminal is gone.
var errHungUp = errors.New("the terminal is gone")
