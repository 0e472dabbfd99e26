package command

import (
	"fmt"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// SetDefaults changes the server's defaults: those whose bit is in Set. The zero value
// of one clears it. Result.Defaults is what they are then.
type SetDefaults struct {
	Set      record.TypeFields // of DefaultFields
	Defaults record.Defaults
	By       string // as in SetType
}

func (SetDefaults) kind() Kind { return KindSetDefaults }

func (SetDefaults) about() About { return About{} }

// DefaultFields are those settings of a type that the server has defaults of, too.
const DefaultFields = record.TypeLease | record.TypeMaxAttempts | record.TypeBackoff | record.TypeRetention

// appendBody appends
//
//	message SetDefaults {
//	  uint32 set = 1;              // as in SetType, of lease, max_attempts, backoff and retention
//	  TypeSettings defaults = 2;   // of them
//	  string by = 3;               // name of the operator's key
//	}
func (c SetDefaults) appendBody(b []byte) []byte {
	b = wire.PutUint(b, 1, uint64(c.Set))
	b = c.Defaults.Append(b, 2)
	return wire.PutString(b, 3, c.By)
}

func (SetDefaults) decode(r fieldReader) (Command, error) {
	var c SetDefaults
	for r.Next() {
		switch r.Num {
		case 1:
			c.Set = record.TypeFields(r.Uint32())
			if c.Set&^DefaultFields != 0 && r.Err == nil {
				r.Err = fmt.Errorf("%w: default in %b", wire.ErrUnknown, c.Set)
			}
		case 2:
			c.Defaults = r.Defaults()
		case 3:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
