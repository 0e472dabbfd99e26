package command

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// SetType changes the settings of a task type: those whose bit is in Set. The
// zero value of a setting clears it.
type SetType struct {
	Type     string
	Set      record.TypeFields
	Settings record.TypeSettings
	By       string // the operator's key, for the trail; "" = open mode
}

func (SetType) kind() Kind { return KindSetType }

func (c SetType) about() About { return About{Known: true, Type: c.Type} }

func (c SetType) needs() uint32 { return needsBy(c.By) }

// appendBody appends
//
//	message SetType {
//	  string task_type = 1;
//	  uint32 set = 2;  // bits: 1 paused, 2 max_claimed, 4 rate_limit, 8 lease, 16 max_attempts, 32 backoff, 64 retention
//	  TypeSettings settings = 3;
//	  string by = 4;   // name of the operator's key
//	}
func (c SetType) appendBody(b []byte) []byte {
	b = wire.PutString(b, 1, c.Type)
	b = wire.PutUint(b, 2, uint64(c.Set))
	b = record.AppendTypeSettings(b, 3, &c.Settings)
	return wire.PutString(b, 4, c.By)
}

func (SetType) decode(r fieldReader) (Command, error) {
	var c SetType
	for r.Next() {
		switch r.Num {
		case 1:
			c.Type = r.Text()
		case 2:
			c.Set = record.TypeFields(r.Uint32())
			if c.Set&^record.TypeFieldsAll != 0 && r.Err == nil {
				r.Err = fmt.Errorf("%w: setting of a type in %b", wire.ErrUnknown, c.Set)
			}
		case 3:
			in := record.ReaderOf(r.Single())
			c.Settings = record.DecodeTypeSettings(&in)
			r.Within(in.Err)
		case 4:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
