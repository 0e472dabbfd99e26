package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// SetType changes the settings of a task type whose bit is in Set. A zero value clears a
// setting.
type SetType struct {
	Type     string
	Set      record.TypeFields
	Settings record.TypeSettings
	By       string // the operator's key, for the trail; "" = open mode
}

func (SetType) kind() Kind { return KindSetType }

func (c SetType) about() About { return About{Known: true, Type: c.Type} }

func (c SetType) needs() uint32 { return needsBy(c.By) }

// code goes through the fields of
//
//	message SetType {
//	  string task_type = 1;
//	  uint32 set = 2;  // bits: 1 paused, 2 max_claimed, 4 rate_limit, 8 lease, 16 max_attempts, 32 backoff, 64 retention
//	  TypeSettings settings = 3;
//	  string by = 4;   // name of the operator's key
//	}
func (c SetType) code(f fields) (Command, []byte, error) {
	f.Text(1, &c.Type)
	f.typeFields(2, &c.Set, record.TypeFieldsAll, "setting of a type")
	c.Settings.Code(&f.Fields, 3)
	f.Text(4, &c.By)
	return done(c, &f)
}
