package command

import (
	"github.com/claimq/claimq/fsm/record"
)

// SetDefaults changes the server's defaults whose bit is in Set. A zero value clears a
// default. Result.Defaults has the defaults afterwards.
type SetDefaults struct {
	Set      record.TypeFields // of DefaultFields
	Defaults record.Defaults
	By       string // as in SetType
}

func (SetDefaults) kind() Kind { return KindSetDefaults }

func (SetDefaults) about() About { return About{} }

// DefaultFields are the settings of a type that also have a server default.
const DefaultFields = record.TypeLease | record.TypeMaxAttempts | record.TypeBackoff | record.TypeRetention

// code goes through the fields of
//
//	message SetDefaults {
//	  uint32 set = 1;              // as in SetType, of lease, max_attempts, backoff and retention
//	  TypeSettings defaults = 2;   // of them
//	  string by = 3;               // name of the operator's key
//	}
func (c SetDefaults) code(f fields) (Command, []byte, error) {
	f.typeFields(1, &c.Set, DefaultFields, "default")
	c.Defaults.Code(&f.Fields, 2)
	f.Text(3, &c.By)
	return done(c, &f)
}
