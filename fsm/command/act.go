package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// Act applies Action to each of the tasks that still matches Filter, in the order of IDs, as the
// action's own command would. It skips the tasks for which that command would be refused.
// Result.Acted counts the tasks that changed.
type Act struct {
	Action      Action
	IDs         []uint64 // 1 to 1,000; ascending
	Filter      record.Filter
	AddAttempts int32 // of ActionRetry, as in Retry
	// EndedUntil, ms by T, leaves out tasks that ended later; 0 = no bound. The caller may have
	// selected tasks by more than Filter has, such as their error: one that has run and failed
	// again since may have failed otherwise.
	EndedUntil int64
}

func (Act) kind() Kind { return KindAct }

func (c Act) about() About { return About{Changes: len(c.IDs)} }

// Action says what an Act does to each task.
type Action uint8

// The actions. The numbers are in the log and never change.
const (
	ActionRetry  Action = 1
	ActionCancel Action = 2
	ActionDelete Action = 3
)

// code reads or writes the fields of
//
//	message Act {
//	  Action action = 1;
//	  repeated uint64 ids = 2 [packed = false];  // ascending
//	  Filter filter = 3;  // what a task must still match
//	  int32 add_attempts = 4;
//	  int64 ended_until = 5;  // ms; a task that ended later is left alone, 0 = no bound
//	}
//
//	enum Action {
//	  ACTION_NONE = 0;  // never written
//	  ACTION_RETRY = 1;
//	  ACTION_CANCEL = 2;
//	  ACTION_DELETE = 3;
//	}
func (c Act) code(f fields) (Command, fields) {
	f.Enum(1, (*uint8)(&c.Action), uint8(ActionDelete))
	f.IDs(2, &c.IDs)
	c.Filter.Code(&f.Fields, 3)
	f.Int32(4, &c.AddAttempts)
	f.Int(5, &c.EndedUntil)
	return done(c, &f)
}

// Cancel ends an unclaimed task as cancelled; on a claimed one it records the request.
// Cancelling a parent does so with each step, and the parent ends with the last of them.
type Cancel struct{ ID uint64 }

func (Cancel) kind() Kind { return KindCancel }

func (c Cancel) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code reads or writes the fields of
//
//	message Cancel {
//	  uint64 id = 1;
//	}
func (c Cancel) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	return done(c, &f)
}

// Retry makes a failed, cancelled or claimed task pending. AddAttempts is added to a
// limited MaxAttempts first. Token 0 means none was sent. For a parent it retries all steps
// that failed or were cancelled, or none of them.
type Retry struct {
	ID          uint64
	Token       uint64
	AddAttempts int32
}

func (Retry) kind() Kind { return KindRetry }

func (c Retry) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// Delete removes an ended task and frees its key. A parent is removed with its steps.
type Delete struct{ ID uint64 }

func (Delete) kind() Kind { return KindDelete }

func (c Delete) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code reads or writes the fields of
//
//	message Retry {
//	  uint64 id = 1;
//	  uint64 token = 2;
//	  int32 add_attempts = 3;
//	}
func (c Retry) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.ID(2, &c.Token)
	f.Int32(3, &c.AddAttempts)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message Delete {
//	  uint64 id = 1;
//	}
func (c Delete) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	return done(c, &f)
}

// Patch changes the fields whose Set flag is true, of a task that is neither claimed nor
// ended.
type Patch struct {
	ID          uint64
	SetPriority bool
	Priority    int32
	SetRunAt    bool
	RunAt       int64 // by T; 0 = at once
	SetLabels   bool
	Labels      []record.Label // as in NewTask
	SetShareKey bool
	ShareKey    string // "" = none
}

func (Patch) kind() Kind { return KindPatch }

func (c Patch) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code reads or writes the fields of
//
//	message Patch {
//	  uint64 id = 1;
//	  bool set_priority = 2;
//	  sint32 priority = 3;
//	  bool set_run_at = 4;
//	  int64 run_at = 5;
//	  bool set_labels = 6;
//	  repeated Label labels = 7;
//	  bool set_share_key = 8;
//	  string share_key = 9;
//	}
func (c Patch) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Bool(2, &c.SetPriority)
	f.Sint(3, &c.Priority)
	f.Bool(4, &c.SetRunAt)
	f.Int(5, &c.RunAt)
	f.Bool(6, &c.SetLabels)
	f.Labels(7, &c.Labels)
	f.Bool(8, &c.SetShareKey)
	f.Text(9, &c.ShareKey)
	return done(c, &f)
}

// Signal hands a task the signal that it waits for, now or once the steps that it depends on have
// completed.
type Signal struct {
	ID   uint64
	Body []byte // JSON as given, or nil
	By   string // name of the key, "" = unknown
}

func (Signal) kind() Kind { return KindSignal }

func (c Signal) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code reads or writes the fields of
//
//	message Signal {
//	  uint64 id = 1;
//	  bytes body = 2;  // JSON as given
//	  string by = 3;   // name of the key
//	}
func (c Signal) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Bytes(2, &c.Body)
	f.Text(3, &c.By)
	return done(c, &f)
}
