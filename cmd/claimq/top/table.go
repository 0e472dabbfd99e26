package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/bytesize"
)

// column is a column of a table. Its cells are formatted for its width.
type column struct {
	name  string
	key   byte // sorts by it; 0: none
	width int  // the least number of characters
	left  bool // aligned left; otherwise right
	grows bool // takes spare room, as far as its cells need it
	spare bool // shown only if it has a value and the columns before have all the room that they need
	cells []string
}

// table is the drawing of a section: the columns in order of importance, and the style of each row.
type table struct {
	columns []column
	styles  []Style
	order   Order
	first   byte // the key of the table's own order
}

// oldAge is the age from which a table shows its age. Large answers are not requested at each look.
const oldAge = 2 * time.Second

// drawTable draws a section in at most height lines. The first is its heading.
func drawTable(v *View, s Screen, section Section, height int) []Line {
	var t table
	name, at, count := "NODE", v.At, len(v.Nodes)
	switch section {
	case TypesSection:
		name, at, count = "TYPE", v.typesAt, len(v.Types)
	case WorkersSection:
		name, at, count = "WORKER", v.workersAt, len(v.Workers)
	}
	shown := max(min(height-1, count), 0)
	first := min(max(s.First[section], 0), count-shown)
	if shown < count {
		name = fmt.Sprintf("%s %d-%d of %d", name, first+1, first+shown, count)
	}
	if age := v.At.Sub(at); age > oldAge && !at.IsZero() {
		name += ", " + showMS(age.Milliseconds()) + " ago"
	}
	switch section {
	case TypesSection:
		t = typesTable(name, sortTypes(v.Types, s.Sort[section])[first:first+shown])
	case WorkersSection:
		t = workersTable(name, sortWorkers(v.Workers, s.Sort[section])[first:first+shown], v)
	case NodesSection:
		t = nodesTable(name, v.Nodes[first:first+shown], v)
	}
	t.order = s.Sort[section]
	return t.draw(s.Columns, section == s.Focus && s.Rows > 0)
}

// draw lays out the columns that fit into the width, in their order. Growing columns get the spare room.
func (t *table) draw(width int, focused bool) []Line {
	columns := t.fitting(width)
	by := t.order.By
	if by == 0 {
		by = t.first
	}
	heading := Line{}
	for i := range columns {
		c := &columns[i]
		style := Heading
		if focused && c.key != 0 && c.key == by {
			style = Marked
		}
		if !focused {
			style = Bold
		}
		heading = append(heading, span{c.pad(c.name), style})
		if i < len(columns)-1 {
			end := Heading
			if !focused {
				end = Bold
			}
			heading = append(heading, span{" ", end})
		}
	}
	lines := []Line{heading}
	for row, style := range t.styles {
		var b strings.Builder
		for i := range columns {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(columns[i].pad(columns[i].cells[row]))
		}
		lines = append(lines, Line{{strings.TrimRight(b.String(), " "), style}})
	}
	return lines
}

// pad brings a cell to the column's width.
func (c *column) pad(cell string) string {
	cell = cut(cell, c.width)
	if c.left {
		return cell + strings.Repeat(" ", c.width-len(cell))
	}
	return strings.Repeat(" ", c.width-len(cell)) + cell
}

// fitting returns the columns that fit, with their final widths. With width 0 it returns all.
func (t *table) fitting(width int) []column {
	if width <= 0 {
		width = 1 << 20
	}
	var columns []column
	used, wanted := -1, -1 // there is no blank before the first
	for _, c := range t.columns {
		before := used
		if c.spare {
			before = wanted
		}
		if c.spare && c.silent() || before+1+c.width > width {
			continue
		}
		used += 1 + c.width
		wanted += 1 + c.need()
		columns = append(columns, c)
	}
	for i := range columns {
		if c := &columns[i]; c.grows {
			more := min(c.need()-c.width, width-used)
			c.width += more
			used += more
		}
	}
	return columns
}

// need returns the width that the column would like to have.
func (c *column) need() int {
	if !c.grows {
		return c.width
	}
	need := max(len(c.name), c.width)
	for _, cell := range c.cells {
		need = max(need, len(cell))
	}
	return need
}

// silent reports whether no cell has a value.
func (c *column) silent() bool {
	return !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "0" && cell != "" })
}

func typesTable(name string, rows []TypeRow) table {
	t := table{first: 'p', columns: []column{
		{name: name, key: 't', width: 12, left: true, grows: true},
		{name: "PENDING", key: 'p', width: 8},
		{name: "CLAIMED", key: 'c', width: 7},
		{name: "OLDEST", key: 'o', width: 6},
		{name: "IN/S", key: 'i', width: 6},
		{name: "DONE/S", key: 'd', width: 6},
		{name: "FAIL/S", key: 'f', width: 6},
		{name: "NOTES", width: 12, left: true, grows: true},
		{name: "SCHEDULED", width: 9, spare: true},
		{name: "FAILED", width: 8, spare: true},
		{name: "BLOCKED", width: 8, spare: true},
		{name: "RUNNING", width: 8, spare: true},
		{name: "COMPLETED", width: 10, spare: true},
	}}
	for i := range rows {
		row := &rows[i]
		notes, style := notesOf(row)
		oldest := "-"
		if row.OldestPendingMS > 0 {
			oldest = showMS(row.OldestPendingMS)
		}
		t.add(style,
			clean(row.TaskType), showCount(row.Counts["pending"], 8), showCount(row.Counts["claimed"], 7),
			oldest, showRate(row.SubmittedPerS, 6), showRate(row.CompletedPerS, 6), showRate(row.FailedPerS, 6), notes,
			showCount(row.Counts["scheduled"], 9), showCount(row.Counts["failed"], 8), showCount(row.Counts["blocked"], 8),
			showCount(row.Counts["running"], 8), showCount(row.Counts["completed"], 10))
	}
	return t
}

// notesOf returns the notes about a type, and their style.
func notesOf(row *TypeRow) (string, Style) {
	var notes []string
	style := Plain
	if row.Paused {
		notes, style = append(notes, "paused"), Warn
	}
	if row.MaxClaimed != nil {
		note := "max " + strconv.Itoa(int(*row.MaxClaimed))
		if row.Counts["claimed"] >= int64(*row.MaxClaimed) {
			note, style = "at "+note, Warn
		}
		notes = append(notes, note)
	}
	if row.RateLimit != nil {
		notes = append(notes, strconv.FormatFloat(*row.RateLimit, 'f', -1, 64)+"/s")
	}
	if row.FailedPerS > 0 {
		share := row.FailedPerS / (row.FailedPerS + row.CompletedPerS) * 100
		notes, style = append([]string{fmt.Sprintf("failing %.0f%%", share)}, notes...), Alert
	}
	return strings.Join(notes, ", "), style
}

func workersTable(name string, rows []WorkerRow, v *View) table {
	t := table{first: 'c', columns: []column{
		{name: name, key: 'w', width: 20, left: true, grows: true},
		{name: "CLAIMED", key: 'c', width: 8},
		{name: "LAST SEEN", key: 's', width: 10},
		{name: "TASKS", width: 8, left: true, grows: true},
	}}
	for i := range rows {
		row := &rows[i]
		last := "-"
		if row.LastSeenMS != nil {
			last = showMS(*row.LastSeenMS+max(v.At.Sub(v.workersAt).Milliseconds(), 0)) + " ago"
		}
		ids := make([]string, len(row.TaskIDs))
		for j, id := range row.TaskIDs {
			ids[j] = strconv.FormatUint(id, 10)
		}
		t.add(Plain, clean(row.WorkerID), showCount(int64(row.Claimed), 8), last, strings.Join(ids, " "))
	}
	return t
}

func nodesTable(name string, rows []NodeRow, v *View) table {
	t := table{columns: []column{
		{name: name, width: 8, left: true, grows: true},
		{name: "STATE", width: 9, left: true},
		{name: "LAG", width: 6},
		{name: "CONTACT", width: 7},
		{name: "MEMORY", width: 8},
		{name: "DISK FREE", width: 9},
		{name: "HEALTH", width: 6, left: true, grows: true},
		{name: "VERSION", width: 8, left: true, grows: true, spare: true},
	}}
	for i := range rows {
		row := &rows[i]
		state, style := row.State, Plain
		switch {
		case !row.Up:
			state, style = "down", Alert
		case !row.Healthy:
			style = Alert
		case row.Problem != "":
			style = Warn
		case row.Suffrage != "voter":
			state = row.Suffrage
		}
		contact := "never"
		if row.LastContactMS >= 0 {
			contact = showMS(row.LastContactMS)
		}
		if row.NodeID == v.Leader {
			contact = "-"
		}
		health := "ok"
		if row.Problem != "" {
			health = clean(row.Problem)
		}
		t.add(style, clean(row.NodeID), clean(state), showKnown(row.LagEntries, func(n int64) string { return showCount(n, 6) }), contact,
			showKnown(row.MemoryBytes, bytesize.Text), showKnown(row.DiskFreeBytes, bytesize.Text), health, clean(row.Version))
	}
	return t
}

// showKnown formats n with show, or returns - for an unknown value.
func showKnown(n *int64, show func(int64) string) string {
	if n == nil {
		return "-"
	}
	return show(*n)
}

// add adds a row with one cell for each column.
func (t *table) add(style Style, cells ...string) {
	t.styles = append(t.styles, style)
	for i, cell := range cells {
		t.columns[i].cells = append(t.columns[i].cells, cell)
	}
}
