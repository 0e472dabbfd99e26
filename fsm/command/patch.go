package command

import (
	"github.com/claimq/claimq/fsm/record"
)

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
}

func (Patch) kind() Kind { return KindPatch }

func (c Patch) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code goes through the fields of
//
//	message Patch {
//	  uint64 id = 1;
//	  bool set_priority = 2;
//	  sint32 priority = 3;
//	  bool set_run_at = 4;
//	  int64 run_at = 5;
//	  bool set_labels = 6;
//	  repeated Label labels = 7;
//	}
func (c Patch) code(f fields) (Command, []byte, error) {
	f.ID(1, &c.ID)
	f.Bool(2, &c.SetPriority)
	f.Sint(3, &c.Priority)
	f.Bool(4, &c.SetRunAt)
	f.Int(5, &c.RunAt)
	f.Bool(6, &c.SetLabels)
	f.Labels(7, &c.Labels)
	return done(c, &f)
}
