package top

import (
	"slices"
	"strings"
	"testing"
)

// cellGrid is a terminal's grid of cells. Like a VT100, after a write to the last cell of a line its cursor stays on
// that cell.
type cellGrid struct {
	cells       [][]byte
	row, column int
}

func newGrid(columns, rows int) *cellGrid {
	t := &cellGrid{}
	for range rows {
		t.cells = append(t.cells, []byte(strings.Repeat("#", columns)))
	}
	return t
}

// write takes text, line ends and the escapes of a frame without styles.
func (t *cellGrid) write(text string) {
	blank := func(cells []byte) { copy(cells, strings.Repeat(" ", len(cells))) }
	at := func() int { return min(t.column, len(t.cells[t.row])-1) }
	for len(text) > 0 {
		before, size := text, 1
		switch {
		case strings.HasPrefix(text, "\x1b[H"):
			t.row, t.column, size = 0, 0, 3
		case strings.HasPrefix(text, "\x1b[K"):
			blank(t.cells[t.row][at():])
			size = 3
		case strings.HasPrefix(text, "\x1b[J"):
			blank(t.cells[t.row][at():])
			for _, line := range t.cells[t.row+1:] {
				blank(line)
			}
			size = 3
		case strings.HasPrefix(text, "\r\n"):
			t.row, t.column, size = t.row+1, 0, 2
		default:
			t.cells[t.row][at()] = text[0]
			t.column++
		}
		text = before[size:]
	}
}

func (t *cellGrid) lines() (lines []string) {
	for _, line := range t.cells {
		lines = append(lines, strings.TrimRight(string(line), " "))
	}
	return lines
}

// A frame shows all of each line, even of one as wide as the terminal, and nothing of the previous frame.
func TestFrame(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"full":     {"pend 3,203", "full line.", "last 4,567"},
		"narrower": {"a", "", "full line."},
		"fewer":    {"full line."},
	} {
		var drawn []Line
		for _, text := range lines {
			drawn = append(drawn, Line{{text: text}})
		}
		grid := newGrid(10, 3)
		grid.write(Frame(drawn, false))
		want := append(slices.Clone(lines), make([]string, 3-len(lines))...)
		if got := grid.lines(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
