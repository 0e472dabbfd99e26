package fsm

// schedulesMax bounds the schedules: a snapshot copies them while nobody is
// served.
const schedulesMax = 10_000

// Schedule submits a task again and again. Exactly one of Cron and EveryMS is
// set. It is never changed in place.
type Schedule struct {
	Name string // 1 to 128 of A-Z a-z 0-9 _ . : -
	// Task is what is submitted for each slot. It has no Key, RunAt and ExpiresAt.
	Task     NewTask
	Cron     string // as given
	Timezone string // IANA name; "" = UTC
	EveryMS  int64
	// OverlapAllow submits also while the last task has not ended; else the slot
	// is passed over.
	OverlapAllow bool
	// CatchUpSkip passes over slots that were missed; else one task is made up
	// for all of them.
	CatchUpSkip bool
	Paused      bool
	// NextRunAt is the slot that it waits for, by T; 0 = none: it is paused, or
	// its time never comes again.
	NextRunAt int64
}

// ScheduleView is what is saved of a schedule. A *ScheduleView that a Machine
// hands out is read-only, and never changed: a change makes a new one.
type ScheduleView struct {
	Schedule
	Version    uint64 // grows whenever it is replaced: the index of that entry
	LastTaskID uint64 // 0 = none yet
	LastRunAt  int64  // the slot of that task, by T; 0 = none yet
	Skipped    uint64 // slots passed over since Version, as the last task had not ended or they were missed
	CreatedAt  int64
	UpdatedAt  int64
}

// Schedules returns all of them, sorted by name.
func (m *Machine) Schedules() []*ScheduleView { return m.schedules }

// Schedule returns the schedule of that name, nil if there is none.
func (m *Machine) Schedule(name string) *ScheduleView { return nil }

// DueSchedules returns up to limit schedules whose slot is at t or before, the
// earliest first, equal ones by name.
func (m *Machine) DueSchedules(t int64, limit int) []*ScheduleView { return nil }

// NextSlot returns the earliest slot that a schedule waits for, by T; ok false
// if none does.
func (m *Machine) NextSlot() (t int64, ok bool) { return 0, false }

func (m *Machine) setSchedule(c SetSchedule) Result       { return Result{} }
func (m *Machine) deleteSchedule(c DeleteSchedule) Result { return Result{} }
func (m *Machine) runSchedules(c RunSchedules) Result     { return Result{} }
