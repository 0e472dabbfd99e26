package term

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// These bound the width of a terminal: no table is made narrower or wider.
const (
	terminalWidthMin = 40
	terminalWidthMax = 100_000
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// WidthOf returns the columns of the terminal f, or 0 if f is no terminal. columns is the variable COLUMNS, which
// overrides the terminal's answer.
func WidthOf(f *os.File, columns string) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	width := int(size.Col)
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		width = n
	}
	if width == 0 { // the terminal does not know, for example on a serial line
		return 0
	}
	return min(max(width, terminalWidthMin), terminalWidthMax)
}
