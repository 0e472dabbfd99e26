package top

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What is written to the terminal when the view begins and ends: the alternate
// screen, without a cursor, without wrapping.
const (
	enterScreen = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"
)

// IsTerminal reports whether f is one.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// Size returns a terminal's columns and rows, 80 and 24 if it does not say.
func Size(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// terminal is a terminal in raw mode, from enter to leave. It is for one goroutine,
// but for keys.
type terminal struct {
	in, out *os.File
	saved   unix.Termios
	entered bool
}

// enter keeps how the terminal was and makes it ours.
func (t *terminal) enter() error {
	saved, err := unix.IoctlGetTermios(int(t.in.Fd()), getTermios)
	if err != nil {
		return fmt.Errorf("ask the terminal for its settings: %w", err)
	}
	raw := *saved
	raw.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INPCK | unix.ISTRIP | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN | unix.ISIG
	raw.Cflag |= unix.CS8
	// A read returns after a fifth of a second without a key: so the reader ends
	// when it is told to, and ESC is known from what begins with it.
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 2
	if err := unix.IoctlSetTermios(int(t.in.Fd()), setTermios, &raw); err != nil {
		return fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	t.saved, t.entered = *saved, true
	_, err = t.out.WriteString(enterScreen)
	return err
}

// leave brings the terminal back to what it was. It does nothing the second time.
func (t *terminal) leave() error {
	if !t.entered {
		return nil
	}
	t.entered = false
	_, err := t.out.WriteString(leaveScreen)
	return errors.Join(err, unix.IoctlSetTermios(int(t.in.Fd()), setTermios, &t.saved))
}

// errHungUp is returned when the terminal is gone.
var errHungUp = errors.New("the terminal is gone")

// keys reads what is typed and sends it, until stop is closed or the terminal is
// gone. The caller waits for done.
func (t *terminal) keys(stop <-chan struct{}) (typed <-chan key, gone <-chan error, done *sync.WaitGroup) {
	keys, failed := make(chan key), make(chan error, 1)
	done = &sync.WaitGroup{}
	done.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				failed <- fmt.Errorf("reading keys: %v", p)
			}
		}()
		if err := t.readKeys(stop, keys); err != nil {
			failed <- err
		}
	})
	return keys, failed, done
}

func (t *terminal) readKeys(stop <-chan struct{}, keys chan<- key) error {
	buffer := make([]byte, 256)
	var rest []byte
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		begun := time.Now()
		n, err := unix.Read(int(t.in.Fd()), buffer)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return fmt.Errorf("read the terminal: %w", err)
		case n == 0 && time.Since(begun) < 50*time.Millisecond && !IsTerminal(t.in):
			return errHungUp
		}
		var pressed []key
		if n == 0 && len(rest) > 0 { // nothing more of it comes
			pressed, rest = []key{keyEscape}, nil
		} else {
			pressed, rest = parseKeys(append(rest, buffer[:max(n, 0)]...))
		}
		for _, k := range pressed {
			select {
			case keys <- k:
			case <-stop:
				return nil
			}
		}
	}
}
