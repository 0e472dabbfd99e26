package fsm

import (
	"github.com/claimq/claimq/fsm/errorgroup"
	"github.com/claimq/claimq/fsm/record"
)

// FailuresQuery says which failed tasks to look at.
type FailuresQuery struct {
	Type  string // "" = all
	From  End    // the first one; the zero value = the latest
	Limit int    // how many to look at, those of other types too
}

// Failures adds to groups the failed tasks that q asks for, the latest end first. next is
// the one to go on with, ok false if there is none.
func (m *Machine) Failures(groups *errorgroup.Groups, q FailuresQuery) (next End, ok bool) {
	if q.From == (End{}) {
		q.From = latestEnd
	}
	looked := 0
	for end := range m.failed.Latest(q.From) {
		if looked == q.Limit {
			return end, true
		}
		looked++
		kept := m.tasks.Look(end.ID)
		if t := kept.Record; t != nil {
			if q.Type == "" || t.Type == q.Type {
				groups.Add([]byte(t.Type), []byte(t.Error), end.ID, end.At)
			}
			continue
		}
		var name, failure []byte
		for r := (record.Scanner{Rest: kept.Packed}); r.NextUntil(record.FieldError); {
			switch r.Num {
			case record.FieldType:
				name = r.Text
			case record.FieldError:
				failure = r.Text
			}
		}
		if q.Type == "" || string(name) == q.Type {
			groups.Add(name, failure, end.ID, end.At)
		}
	}
	return End{}, false
}

// Failed returns how many tasks of the type have failed, "" = of all types.
func (m *Machine) Failed(taskType string) int64 {
	if taskType == "" {
		return m.counts[record.StatusFailed]
	}
	if ts := m.types[taskType]; ts != nil {
		return ts.counts[record.StatusFailed]
	}
	return 0
}
