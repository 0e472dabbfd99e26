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
