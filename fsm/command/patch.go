package command

import (
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// Patch changes fields of a task that is not claimed and has not ended: those
// whose Set flag is true.
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

// appendBody appends
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
func (c Patch) appendBody(b []byte) []byte {
	b = wire.PutID(b, 1, c.ID)
	b = wire.PutBool(b, 2, c.SetPriority)
	b = wire.PutSint(b, 3, c.Priority)
	b = wire.PutBool(b, 4, c.SetRunAt)
	b = wire.PutInt(b, 5, c.RunAt)
	b = wire.PutBool(b, 6, c.SetLabels)
	return record.AppendLabels(b, 7, c.Labels)
}

func (Patch) decode(r fieldReader) (Command, error) {
	var c Patch
	for r.Next() {
		switch r.Num {
		case 1:
			c.ID = r.ID()
		case 2:
			c.SetPriority = r.Bool()
		case 3:
			c.Priority = r.Sint32()
		case 4:
			c.SetRunAt = r.Bool()
		case 5:
			c.RunAt = r.Int64()
		case 6:
			c.SetLabels = r.Bool()
		case 7:
			c.Labels = r.AddLabel(c.Labels)
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
