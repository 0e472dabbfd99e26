package fsm

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// SetSchedule makes the schedule, or replaces the one of its name. Result.Created
// says which; Result.Schedule is the outcome. CodeInvalidRequest if there
// would be more than 10,000.
type SetSchedule struct {
	Schedule record.Schedule
	By       string // as in SetType
}

func (SetSchedule) kind() kind { return kindSetSchedule }
func (c SetSchedule) about() About {
	return About{Known: true, Schedule: c.Schedule.Name, Submits: []record.NewTask{c.Schedule.Task}}
}
func (c SetSchedule) needs() uint32                      { return needsBy(c.By) }
func (c SetSchedule) applyTo(m *Machine) (Result, error) { return m.setSchedule(c), nil }

// DeleteSchedule removes the schedule. CodeScheduleNotFound if there is none.
type DeleteSchedule struct {
	Name string
	By   string // as in SetType
}

func (DeleteSchedule) kind() kind                           { return kindDeleteSchedule }
func (c DeleteSchedule) about() About                       { return About{Known: true, Schedule: c.Name} }
func (c DeleteSchedule) needs() uint32                      { return needsBy(c.By) }
func (c DeleteSchedule) applyTo(m *Machine) (Result, error) { return m.deleteSchedule(c), nil }

// RunSchedules does what slots of schedules are due. An item changes nothing
// unless its schedule still has that version and waits for that slot, which has
// come by T: so duplicates and items of a deposed leader are harmless, and each
// slot is done once. Result.Submitted has the tasks that it made, in the order
// of their items.
type RunSchedules struct{ Items []ScheduleRun }

func (RunSchedules) kind() kind { return kindRunSchedules }
func (c RunSchedules) needs() uint32 {
	if slices.ContainsFunc(c.Items, func(i ScheduleRun) bool { return i.Passed != 0 }) {
		return record.LevelActs
	}
	return 0
}
func (c RunSchedules) about() About                       { return About{Changes: len(c.Items)} }
func (c RunSchedules) applyTo(m *Machine) (Result, error) { return m.runSchedules(c), nil }

// ScheduleRun is one slot of one schedule. The leader has computed Next: time
// zones are no matter of the state.
type ScheduleRun struct {
	Name    string
	Version uint64
	Slot    int64 // by T: the schedule's NextRunAt
	Next    int64 // by T, after Slot, else the item changes nothing; 0 = never again
	// Skip moves on to Next without a task: the slot was missed, and with it all others
	// before Next. Passed is how many these are together; less than 1 is 1.
	Skip   bool
	Passed int64
}

// Schedules returns all of them, sorted by name. The slice is never changed.
func (m *Machine) Schedules() []*record.ScheduleView { return m.schedules }

// Schedule returns the schedule of that name, nil if there is none.
func (m *Machine) Schedule(name string) *record.ScheduleView {
	at, known := m.findSchedule(name)
	if !known {
		return nil
	}
	return m.schedules[at]
}

// DueSchedules returns up to limit schedules whose slot is at t or before, the
// earliest first, equal ones by name.
func (m *Machine) DueSchedules(t int64, limit int) []*record.ScheduleView {
	var due []*record.ScheduleView
	m.slots.Scan(func(v *record.ScheduleView) bool {
		if v.NextRunAt > t || len(due) >= limit {
			return false
		}
		due = append(due, v)
		return true
	})
	return due
}

// NextSlot returns the earliest slot that a schedule waits for, by T; ok false
// if none does.
func (m *Machine) NextSlot() (t int64, ok bool) {
	first, ok := m.slots.Min()
	if !ok {
		return 0, false
	}
	return first.NextRunAt, true
}

// newSlots returns an empty index of the schedules that wait for a slot: by its
// time, then by name.
func newSlots() *btree.BTreeG[*record.ScheduleView] {
	return btree.NewBTreeGOptions(func(a, b *record.ScheduleView) bool {
		return a.NextRunAt < b.NextRunAt || a.NextRunAt == b.NextRunAt && a.Name < b.Name
	}, btree.Options{NoLocks: true})
}

func (m *saved) findSchedule(name string) (at int, known bool) {
	return slices.BinarySearchFunc(m.schedules, name, func(v *record.ScheduleView, name string) int {
		return strings.Compare(v.Name, name)
	})
}

// setSchedule makes or replaces a schedule.
func (m *Machine) setSchedule(c SetSchedule) Result {
	now := m.header.Stamp.T
	v := &record.ScheduleView{Schedule: c.Schedule, Version: m.moment(), CreatedAt: now, UpdatedAt: now}
	if v.Paused {
		v.NextRunAt = 0
	}
	at, known := m.findSchedule(v.Name)
	all := slices.Clone(m.schedules)
	switch {
	case known:
		was := all[at]
		v.Version = max(v.Version, was.Version+1)
		v.CreatedAt, v.LastTaskID, v.LastRunAt = was.CreatedAt, was.LastTaskID, was.LastRunAt
		v.KeepDone(was)
		m.excludeSchedule(was)
		all[at] = v
	case len(all) >= record.SchedulesMax:
		return Result{Code: CodeInvalidRequest}
	default:
		all = slices.Insert(all, at, v)
	}
	m.schedules = all
	m.includeSchedule(v)
	m.tellBy(event.ScheduleSet, v.Name, c.By)
	return Result{Schedule: v, Created: !known}
}

// deleteSchedule removes a schedule. Its tasks stay.
func (m *Machine) deleteSchedule(c DeleteSchedule) Result {
	at, known := m.findSchedule(c.Name)
	if !known {
		return Result{Code: CodeScheduleNotFound}
	}
	m.excludeSchedule(m.schedules[at])
	m.schedules = slices.Delete(slices.Clone(m.schedules), at, at+1)
	m.tellBy(event.ScheduleDeleted, c.Name, c.By)
	return Result{}
}

// runSchedules does the slots that are still to be done. The list is copied
// once, whatever their number.
func (m *Machine) runSchedules(c RunSchedules) Result {
	var result Result
	var all []*record.ScheduleView
	for i := range c.Items {
		item := &c.Items[i]
		at, known := m.findSchedule(item.Name)
		if !known || !m.waitsFor(m.schedules[at], item) {
			continue
		}
		if all == nil {
			all = slices.Clone(m.schedules)
			m.schedules = all
		}
		m.excludeSchedule(all[at])
		v, submitted := m.runSlot(all[at], item)
		all[at] = v
		m.includeSchedule(v)
		if submitted.Task != nil {
			result.Submitted = append(result.Submitted, submitted)
		}
	}
	return result
}

// waitsFor reports whether the item is of the slot that the schedule waits for,
// and that has come.
func (m *saved) waitsFor(v *record.ScheduleView, item *ScheduleRun) bool {
	return v.Version == item.Version && v.NextRunAt == item.Slot && item.Slot != 0 && item.Slot <= m.header.Stamp.T &&
		(item.Next == 0 || item.Next > item.Slot)
}

// runSlot submits the task of the slot, unless the slot is passed over, and
// returns the schedule as it is from then on, and what it submitted.
func (m *Machine) runSlot(was *record.ScheduleView, item *ScheduleRun) (*record.ScheduleView, Submitted) {
	v := *was
	v.NextRunAt = item.Next
	if item.Skip || !v.OverlapAllow && m.lives(v.LastTaskID) {
		passed := max(1, item.Passed)
		v.Skipped += uint64(passed)
		m.tally.SlotsSkipped += int(passed)
		return &v, Submitted{}
	}
	submitted := m.submitOne(&v.Task, new(record.Task), "schedule "+v.Name)
	v.LastTaskID, v.LastRunAt = submitted.Task.ID, item.Slot
	m.tally.SlotsRun++
	return &v, submitted
}

// lives reports whether the task is there and has not ended.
func (m *saved) lives(id uint64) bool {
	t := m.tasks.Get(id)
	return t != nil && !t.Status.Ended()
}

// includeSchedule adds a schedule to everything derived.
func (m *derived) includeSchedule(v *record.ScheduleView) {
	if v.NextRunAt != 0 {
		m.slots.Set(v)
	}
	m.bytes += record.BytesOfSchedule(v)
}

// excludeSchedule undoes includeSchedule.
func (m *derived) excludeSchedule(v *record.ScheduleView) {
	if v.NextRunAt != 0 {
		m.slots.Delete(v)
	}
	m.bytes -= record.BytesOfSchedule(v)
}

func (c SetSchedule) appendBody(b []byte) []byte {
	b = record.AppendScheduleField(b, 1, &c.Schedule)
	return wire.PutString(b, 2, c.By)
}

func (SetSchedule) decode(r fieldReader) (Command, error) {
	var c SetSchedule
	for r.Next() {
		switch r.Num {
		case 1:
			c.Schedule = r.Schedule()
		case 2:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func (c DeleteSchedule) appendBody(b []byte) []byte {
	b = wire.PutString(b, 1, c.Name)
	return wire.PutString(b, 2, c.By)
}

func (DeleteSchedule) decode(r fieldReader) (Command, error) {
	var c DeleteSchedule
	for r.Next() {
		switch r.Num {
		case 1:
			c.Name = r.Text()
		case 2:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func (c RunSchedules) appendBody(b []byte) []byte { return appendScheduleRuns(b, c.Items) }

func (RunSchedules) decode(r fieldReader) (Command, error) {
	var c RunSchedules
	for r.Next() {
		switch r.Num {
		case 1:
			if c.Items == nil {
				c.Items = make([]ScheduleRun, 0, r.Run())
			}
			in := record.ReaderOf(r.Raw())
			c.Items = append(c.Items, decodeScheduleRun(&in))
			r.Within(in.Err)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

func appendScheduleRuns(b []byte, items []ScheduleRun) []byte {
	for i := range items {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.PutString(b, 1, items[i].Name)
		b = wire.PutUint(b, 2, items[i].Version)
		b = wire.PutInt(b, 3, items[i].Slot)
		b = wire.PutInt(b, 4, items[i].Next)
		b = wire.PutBool(b, 5, items[i].Skip)
		b = wire.EndLength(wire.PutInt(b, 6, items[i].Passed), start)
	}
	return b
}

func decodeScheduleRun(r *record.Reader) (s ScheduleRun) {
	for r.Next() {
		switch r.Num {
		case 1:
			s.Name = r.Text()
		case 2:
			s.Version = r.Uint(1<<64 - 1)
		case 3:
			s.Slot = r.Int64()
		case 4:
			s.Next = r.Int64()
		case 5:
			s.Skip = r.Bool()
		case 6:
			s.Passed = r.Int64()
		default:
			r.Unknown()
		}
	}
	return s
}
