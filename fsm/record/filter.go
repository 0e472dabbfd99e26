package record

import "google.golang.org/protobuf/encoding/protowire"

// Filter selects tasks. Zero fields do not filter.
type Filter struct {
	Status        Status
	Type          string
	WorkerID      string
	Key           string
	ParentID      uint64
	Labels        []Label // all of these, sorted by name
	CreatedAfter  int64   // ms, exclusive
	CreatedBefore int64   // ms, exclusive
	ShareKey      string
}

// Matches reports whether the filter selects the task.
func (q *Filter) Matches(t *Task) bool {
	return (q.Status == 0 || t.Status == q.Status) &&
		(q.Type == "" || t.Type == q.Type) &&
		(q.WorkerID == "" || t.WorkerID == q.WorkerID) &&
		(q.CreatedAfter == 0 || t.CreatedAt > q.CreatedAfter) &&
		(q.CreatedBefore == 0 || t.CreatedAt < q.CreatedBefore) &&
		(q.Key == "" || t.Key == q.Key && HoldsKey(t)) &&
		(len(q.Labels) == 0 || hasLabels(t.Opts().Labels, q.Labels)) &&
		(q.ShareKey == "" || t.Opts().ShareKey == q.ShareKey) &&
		(q.ParentID == 0 || t.Step() != nil && t.Step().ParentID == q.ParentID)
}

// hasLabels reports whether all contains each of want. Both are sorted by name. A label
// that is twice in want counts once; a task has only one value for each name.
func hasLabels(all, want []Label) bool {
	for _, w := range want {
		for len(all) > 0 && all[0].Name < w.Name {
			all = all[1:]
		}
		if len(all) == 0 || all[0] != w {
			return false
		}
	}
	return true
}

// RecordFilter filters tasks by their packed records. It decodes no record that does not
// match, and reads no further than the filter needs.
type RecordFilter struct {
	*Filter
	last protowire.Number // the last field needed, or 0
}

// NewRecordFilter returns the RecordFilter equivalent to q.
func NewRecordFilter(q *Filter) RecordFilter {
	f := RecordFilter{Filter: q}
	for _, asks := range [...]struct {
		num protowire.Number
		yes bool
	}{
		{FieldType, q.Type != ""},
		{FieldKey, q.Key != ""},
		{FieldStatus, q.Status != 0},
		{FieldWorker, q.WorkerID != ""},
		{FieldCreated, q.CreatedAfter != 0 || q.CreatedBefore != 0},
		{FieldLabel, len(q.Labels) > 0},
		{FieldUnique, q.Key != ""},
		{FieldShare, q.ShareKey != ""},
	} {
		if asks.yes {
			f.last = asks.num
		}
	}
	return f
}

// Matches is Filter.Matches for a packed task, which is never a step.
func (f *RecordFilter) Matches(record []byte) bool {
	var (
		status  Status
		created int64
		unique  bool
		worker  []byte
		key     []byte
		share   []byte
		labels  = f.Labels // labels still to be found
	)
	for r := (Scanner{Rest: record}); r.NextUntil(f.last); {
		switch r.Num {
		case FieldType:
			if f.Type != "" && string(r.Text) != f.Type {
				return false
			}
		case FieldKey:
			key = r.Text
		case FieldStatus:
			status = Status(r.value)
			if f.Status != 0 && status != f.Status {
				return false
			}
		case FieldWorker:
			worker = r.Text
		case FieldCreated:
			created = int64(r.value)
		case FieldLabel:
			label, value := readLabel(r.Text)
			for len(labels) > 0 && string(label) == labels[0].Name && string(value) == labels[0].Value {
				labels = labels[1:]
			}
		case FieldUnique:
			unique = true
		case FieldShare:
			share = r.Text
		}
	}
	return len(labels) == 0 && f.ParentID == 0 &&
		(f.ShareKey == "" || string(share) == f.ShareKey) &&
		(f.WorkerID == "" || string(worker) == f.WorkerID) &&
		(f.CreatedAfter == 0 || created > f.CreatedAfter) &&
		(f.CreatedBefore == 0 || created < f.CreatedBefore) &&
		(f.Key == "" || string(key) == f.Key && !(unique && status.Ended()))
}

// readLabel reads a label's message. name and value share its memory.
func readLabel(message []byte) (name, value []byte) {
	for r := (Scanner{Rest: message}); r.NextUntil(2); {
		if r.Num == 1 {
			name = r.Text
		} else {
			value = r.Text
		}
	}
	return name, value
}

// Code reads or writes field num, a message.
func (q *Filter) Code(f *Fields, num protowire.Number) {
	m, ok := f.Message(num, true)
	if !ok {
		return
	}
	f.Enum(1, (*uint8)(&q.Status), uint8(StatusCancelled))
	f.Text(2, &q.Type)
	f.Text(3, &q.WorkerID)
	f.Text(4, &q.Key)
	f.ID(5, &q.ParentID)
	f.Labels(6, &q.Labels)
	f.Int(7, &q.CreatedAfter)
	f.Int(8, &q.CreatedBefore)
	f.Text(9, &q.ShareKey)
	f.EndMessage(m)
}
