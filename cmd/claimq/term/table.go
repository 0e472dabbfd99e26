package term

import (
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
)

const (
	// columnGap is the space between two columns of a table.
	columnGap = 2
	// nameMin and textMin are the least widths of name and text columns before whole columns are left out. cutMin
	// is the least width if that does not suffice.
	nameMin = 12
	textMin = 24
	cutMin  = 6
)

// Table prints rows. The first row holds the names of the columns. On a terminal the table is made to fit: empty
// columns are left out, then the columns in less, in that order, and names and texts are cut. Elsewhere everything is
// printed in full. The cells must be printable.
func (a *App) Table(rows [][]string, less ...string) error {
	if a.Width == 0 {
		return Columns(a.Stdout, rows)
	}
	rows, left := fitted(rows, a.Width, less)
	if err := Columns(a.Stdout, rows); err != nil || len(left) == 0 {
		return err
	}
	return a.Sayf("(no room for %s)", strings.ToLower(strings.Join(left, ", ")))
}

// Columns writes rows in columns as wide as their cells.
func Columns(w io.Writer, rows [][]string) error {
	widths := columnWidths(rows)
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+columnGap-displayWidth(cell)))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// columnWidths returns the widths of the columns. The last cell of a row needs no room, because nothing follows it.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 {
				widths[i] = max(widths[i], displayWidth(cell))
			}
		}
	}
	return widths
}

// fitted returns the rows, no wider than width where possible. left holds the names of the columns that were left out
// although they have values.
func fitted(rows [][]string, width int, less []string) (fit [][]string, left []string) {
	fit = make([][]string, len(rows))
	for i := range rows {
		fit[i] = slices.Clone(rows[i])
	}
	if tableWidth(fit) <= width {
		return fit, nil
	}
	tooWide := func() bool { return leastWidth(fit) > width }
	for i := len(fit[0]) - 1; i > 0; i-- {
		if tooWide() && isEmptyColumn(fit, i) {
			fit = withoutColumn(fit, i)
		}
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "01-02 15:04:05"} {
		if tooWide() {
			shortenTimes(fit, layout)
		}
	}
	for _, name := range less {
		if i := slices.Index(fit[0], name); i >= 0 && tooWide() {
			fit, left = withoutColumn(fit, i), append(left, strings.TrimSuffix(name, " (UTC)"))
		}
	}
	cutRows(fit, width)
	return fit, left
}

// cutRows cuts the longest texts so that the rows fit into width.
func cutRows(rows [][]string, width int) {
	widths, most := fullWidths(rows), 0
	for i, name := range rows[0] {
		if leastOf(name) > 0 {
			most = max(most, min(widths[i], terminalWidthMax))
		}
	}
	for most > cutMin && widthWith(rows[0], widths, func(string) int { return most }) > width {
		most--
	}
	for _, row := range rows[1:] {
		for i, name := range rows[0] {
			if leastOf(name) > 0 {
				row[i] = CutTo(row[i], max(most, displayWidth(name)))
			}
		}
	}
}

// fullWidths returns the full width of each column.
func fullWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			widths[i] = max(widths[i], displayWidth(row[i]))
		}
	}
	return widths
}

// tableWidth returns the width of the rows without any cut.
func tableWidth(rows [][]string) int {
	return widthWith(rows[0], fullWidths(rows), func(string) int { return terminalWidthMax })
}

// leastWidth returns the width of the rows when names and texts are cut as far as is useful.
func leastWidth(rows [][]string) int { return widthWith(rows[0], fullWidths(rows), leastOf) }

// widthWith returns the width of all columns when names and texts are cut to most of their column, but not below the
// column's name.
func widthWith(names []string, widths []int, most func(name string) int) int {
	total := -columnGap
	for i, name := range names {
		widest := widths[i]
		if leastOf(name) > 0 {
			widest = min(widest, max(most(name), displayWidth(name)))
		}
		total += widest + columnGap
	}
	return total
}

// leastOf returns how narrow a column of that name may become, or 0 if it must not be cut. A cut number or time would
// be wrong.
func leastOf(name string) int {
	switch name {
	case "TYPE", "WORKER", "STEP", "GROUP", "TASKS", "PROCESSOR", "HELD BY", "NAME", "WHEN", "NODE", "VERSION", "BACKOFF", "SETTING":
		return nameMin
	case "ERROR", "PARAMS", "MESSAGE", "HTTP", "PEER", "HEALTH", "RESULT", "VALUE", "ORIGIN":
		return textMin
	}
	return 0
}

// isEmptyColumn reports whether no row has a value in the column.
func isEmptyColumn(rows [][]string, column int) bool {
	for _, row := range rows[1:] {
		if row[column] != "-" && row[column] != "0" && row[column] != "" {
			return false
		}
	}
	return true
}

func withoutColumn(rows [][]string, column int) [][]string {
	for i := range rows {
		rows[i] = slices.Delete(rows[i], column, column+1)
	}
	return rows
}

// shortenTimes writes times in another layout.
func shortenTimes(rows [][]string, layout string) {
	for i, name := range rows[0] {
		if !strings.HasSuffix(name, "(UTC)") {
			continue
		}
		for _, row := range rows[1:] {
			if at, err := time.Parse("2006-01-02 15:04:05", row[i]); err == nil { // it reads milliseconds too
				row[i] = at.Format(layout)
			}
		}
	}
}

// CutTo cuts s to at most width columns of a terminal. width must be positive.
func CutTo(s string, width int) string {
	if displayWidth(s) <= width {
		return s
	}
	kept, used := 0, 0
	for left := uniseg.NewGraphemes(s); left.Next(); _, kept = left.Positions() {
		if used += left.Width(); used > width-1 {
			break
		}
	}
	return s[:kept] + "…"
}

// displayWidth returns the number of terminal columns for s. s must be printable.
func displayWidth(s string) int {
	if strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return len(s) // without this, a table of 100,000 rows would take seconds
	}
	return uniseg.StringWidth(s)
}
