package fsm

import (
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
)

// setType changes the settings of a type. A type whose settings are all cleared
// has no record.
func (m *Machine) setType(c command.SetType) Result {
	settings := *m.settingsOf(c.Type)
	settings.Change(c.Set, &c.Settings)
	at, known := m.findRecord(c.Type)
	changed := !settings.Equal(m.settingsOf(c.Type))
	switch {
	case known:
	case settings == (record.TypeSettings{}):
		return m.typeResult(c.Type)
	case len(m.settings) >= record.TaskTypesMax:
		return Result{Code: CodeInvalidRequest}
	default:
		ts := m.typeOf(c.Type)
		ts.record = &record.TaskType{Name: ts.name}
		m.settings = slices.Insert(m.settings, at, ts.record)
	}
	ts := m.types[c.Type]
	ts.record.SetRate(settings.RateLimit, m.header.Stamp.T)
	ts.record.Settings = settings
	if settings == (record.TypeSettings{}) {
		m.settings = slices.Delete(m.settings, at, at+1)
		ts.record = nil
	}
	ts.added = ts.ready // what other limits let be claimed is news
	m.place(ts)
	m.dropType(ts)
	if changed {
		m.tellBy(event.TypeChanged, c.Type, c.By)
	}
	return m.typeResult(c.Type)
}

// findRecord returns the place of the type's record, or where it would have to
// be.
func (m *saved) findRecord(name string) (at int, known bool) {
	return slices.BinarySearchFunc(m.settings, name, func(r *record.TaskType, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// settingsOf returns the settings of the type, read-only; the zero value if it
// has none.
func (m *derived) settingsOf(name string) *record.TypeSettings {
	ts := m.typeNamed(name)
	if ts == nil || ts.record == nil {
		return &noSettings
	}
	return &ts.record.Settings
}

// noSettings is what settingsOf returns of most types. It is never changed.
var noSettings record.TypeSettings

// dropType forgets a type that has neither tasks nor settings.
func (m *Machine) dropType(ts *typeState) {
	if ts.tasks > 0 || ts.record != nil {
		return
	}
	if m.undo != nil {
		m.undo.dropped = append(m.undo.dropped, ts)
	}
	delete(m.types, ts.name)
	m.ready.Remove(&ts.Contender)
	m.fall(ts)
	m.typesChanged++
	m.recent = nil
	m.byName.Delete(ts.name)
	m.followed.Delete(ts.name)
	if ts.noted < len(m.noted) && m.noted[ts.noted].Type == ts.name {
		if m.notedGone == nil {
			m.notedGone = map[string]int{}
		}
		m.notedGone[ts.name] = ts.noted
	}
}

// typeResult is the result that shows the type. It has no rates: results are the
// same on all nodes.
func (m *Machine) typeResult(name string) Result {
	v, _ := m.Type(name, m.header.Stamp)
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = 0, 0, 0
	return Result{Type: &v}
}

// findOldest returns the id of the pending task that was submitted first, 0 if
// none is pending.
func (ts *typeState) findOldest() uint64 {
	id, _ := ts.first.First(index.Oldest)
	if held, ok := ts.behind.Min(); ok && (id == 0 || held < id) {
		id = held
	}
	return id
}
