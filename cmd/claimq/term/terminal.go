package term

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The bounds of a terminal's width: no table is made narrower, and none is wider.
const (
	terminalWidthMin = 40
	terminalWidthMax = 100_000
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// WidthOf is how many columns the terminal has that f is, 0 if it is none.
// columns is the variable COLUMNS, which beats what the terminal says.
func WidthOf(f *os.File, columns string) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	width := int(size.Col)
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		width = n
	}
	if width == 0 { // a terminal that does not know, as on a serial line
		return 0
	}
	return min(max(width, terminalWidthMin), terminalWidthMax)
}
