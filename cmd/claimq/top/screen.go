package top

import (
	"slices"
	"strings"
	"time"
)

// Section is one of the tables.
type Section uint8

// These are the tables in their order on the screen.
const (
	TypesSection Section = iota
	WorkersSection
	NodesSection
	sectionCount
)

// Screen describes where a view is drawn and what the user has chosen to see.
type Screen struct {
	Columns, Rows int       // 0: no limit
	Now           time.Time // the time for ages between looks; zero: the view's own
	Interval      time.Duration
	Focus         Section // the keys scroll and sort its rows
	Sort          [sectionCount]Order
	First         [sectionCount]int // the first row to show, if enough rows follow it
	Paused, Help  bool
}

// Order says how the rows of a table are sorted: by a column, or in the table's own order.
type Order struct {
	By       byte // the column's key; 0: the table's own order
	Reversed bool
}

// sortTypes returns the rows in the order in which they are shown. Equal rows are sorted by name.
func sortTypes(rows []TypeRow, o Order) []TypeRow {
	rows = slices.Clone(rows)
	most := func(of func(t *TypeRow) float64) func(a, b TypeRow) int {
		return func(a, b TypeRow) int { return compare(of(&b), of(&a)) }
	}
	var by func(a, b TypeRow) int
	switch o.By {
	case 't':
		by = func(a, b TypeRow) int { return strings.Compare(a.TaskType, b.TaskType) }
	case 'c':
		by = most(func(t *TypeRow) float64 { return float64(t.Counts["claimed"]) })
	case 'o':
		by = most(func(t *TypeRow) float64 { return float64(t.OldestPendingMS) })
	case 'i':
		by = most(func(t *TypeRow) float64 { return t.SubmittedPerS })
	case 'd':
		by = most(func(t *TypeRow) float64 { return t.CompletedPerS })
	case 'f':
		by = most(func(t *TypeRow) float64 { return t.FailedPerS })
	default:
		by = most(func(t *TypeRow) float64 { return float64(t.Counts["pending"]) })
	}
	slices.SortStableFunc(rows, func(a, b TypeRow) int {
		if n := turn(by(a, b), o); n != 0 {
			return n
		}
		return strings.Compare(a.TaskType, b.TaskType)
	})
	return rows
}

// sortWorkers does for workers what sortTypes does.
func sortWorkers(rows []WorkerRow, o Order) []WorkerRow {
	rows = slices.Clone(rows)
	by := func(a, b WorkerRow) int { return b.Claimed - a.Claimed }
	switch o.By {
	case 'w':
		by = func(a, b WorkerRow) int { return strings.Compare(a.WorkerID, b.WorkerID) }
	case 's':
		by = func(a, b WorkerRow) int { return compare(seen(&a), seen(&b)) }
	}
	slices.SortStableFunc(rows, func(a, b WorkerRow) int {
		if n := turn(by(a, b), o); n != 0 {
			return n
		}
		return strings.Compare(a.WorkerID, b.WorkerID)
	})
	return rows
}

// seen returns the milliseconds since the worker's last request. A worker without one comes last.
func seen(w *WorkerRow) float64 {
	if w.LastSeenMS == nil {
		return countMax
	}
	return float64(*w.LastSeenMS)
}

func turn(n int, o Order) int {
	if o.Reversed {
		return -n
	}
	return n
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
