package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// Act applies Action to those of the tasks that still match Filter, in the order of IDs,
// each like its own command. It skips the tasks for which that command would be refused.
// Result.Acted counts the tasks that changed.
type Act struct {
	Action      Action
	IDs         []uint64 // 1 to 1,000; ascending
	Filter      record.Filter
	AddAttempts int32 // of ActionRetry, as in Retry
}

func (Act) kind() Kind { return KindAct }

func (c Act) needs() uint32 { return c.Filter.Needs() }

func (c Act) about() About { return About{Changes: len(c.IDs)} }

// Action says what an Act does to each task.
type Action uint8

// The actions. The numbers are in the log and never change.
const (
	ActionRetry  Action = 1
	ActionCancel Action = 2
	ActionDelete Action = 3
)

// code goes through the fields of
//
//	message Act {
//	  Action action = 1;
//	  repeated uint64 ids = 2 [packed = false];  // ascending
//	  Filter filter = 3;  // what a task must still match
//	  int32 add_attempts = 4;
//	}
//
//	enum Action {
//	  ACTION_NONE = 0;  // never written
//	  ACTION_RETRY = 1;
//	  ACTION_CANCEL = 2;
//	  ACTION_DELETE = 3;
//	}
func (c Act) code(f fields) (Command, []byte, error) {
	f.Enum(1, (*uint8)(&c.Action), uint8(ActionDelete))
	f.IDs(2, &c.IDs)
	c.Filter.Code(&f.Fields, 3)
	f.Int32(4, &c.AddAttempts)
	return done(c, &f)
}
