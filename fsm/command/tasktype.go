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
	// IfQueue changes the type only if its queue is Queue; otherwise the result is refused
	// and has the unchanged type.
	IfQueue bool
	Queue   string
}

func (SetType) kind() Kind { return KindSetType }

func (c SetType) about() About {
	a := About{Known: true, Type: c.Type}
	if c.Set&record.TypeDeadLetter != 0 {
		a.DeadLetter = c.Settings.DeadLetter
	}
	return a
}

// code reads or writes the fields of
//
//	message SetType {
//	  string task_type = 1;
//	  uint32 set = 2;  // bits: 1 paused, 2 max_claimed, 4 rate_limit, 8 lease, 16 max_attempts, 32 backoff, 64 retention, 128 queue, 256 delay, 512 dead letter, 1024 max_claimed_per_key, 2048 fair, 4096 rate_limit_per_key
//	  TypeSettings settings = 3;
//	  string by = 4;   // name of the operator's key
//	  bool if_queue = 5;  // refused unless the type's queue is the next field
//	  string queue = 6;
//	}
func (c SetType) code(f fields) (Command, fields) {
	f.Text(1, &c.Type)
	f.typeFields(2, &c.Set, record.TypeFieldsAll, "setting of a type")
	c.Settings.Code(&f.Fields, 3)
	f.Text(4, &c.By)
	f.Bool(5, &c.IfQueue)
	f.Text(6, &c.Queue)
	return done(c, &f)
}

// SetShare replaces the settings of one share. The zero value removes them. Result.Share is the
// share afterwards. CodeInvalidRequest if more than record.SharesSetMax would have settings.
type SetShare struct {
	Type     string
	ShareKey string
	Settings record.ShareSettings
	By       string // as in SetType
}

func (SetShare) kind() Kind { return KindSetShare }

func (c SetShare) about() About { return About{Known: true, Type: c.Type} }

// code reads or writes the fields of
//
//	message SetShare {
//	  string task_type = 1;
//	  string share_key = 2;
//	  ShareSettings settings = 3;  // left out: none
//	  string by = 4;               // name of the operator's key
//	}
func (c SetShare) code(f fields) (Command, fields) {
	f.Text(1, &c.Type)
	f.Text(2, &c.ShareKey)
	c.Settings.Code(&f.Fields, 3)
	f.Text(4, &c.By)
	return done(c, &f)
}

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

// code reads or writes the fields of
//
//	message SetDefaults {
//	  uint32 set = 1;              // as in SetType, of lease, max_attempts, backoff and retention
//	  TypeSettings defaults = 2;   // of them
//	  string by = 3;               // name of the operator's key
//	}
func (c SetDefaults) code(f fields) (Command, fields) {
	f.typeFields(1, &c.Set, DefaultFields, "default")
	c.Defaults.Code(&f.Fields, 2)
	f.Text(3, &c.By)
	return done(c, &f)
}

// MoveTasks starts to move the waiting tasks of a type to another type, or cancels such a move. It
// moves nothing itself: ticks do. Result.Type is the type afterwards. It is refused if the type
// has no settings, if it has a running move already or too many types have one, or if the move to
// cancel does not run.
type MoveTasks struct {
	Type   string
	Cancel uint64 // number of the move to cancel; 0: it starts one
	To     string // "" = back to where each task came from
	Rate   int32  // tasks a second; 0 = no limit
	By     string // as in SetType
}

func (MoveTasks) kind() Kind { return KindMoveTasks }

func (c MoveTasks) about() About { return About{Known: true, Type: c.Type, DeadLetter: c.To} }

// code reads or writes the fields of
//
//	message MoveTasks {
//	  string task_type = 1;
//	  uint64 cancel = 2;   // number of the move to cancel, 0 starts one
//	  string to = 3;       // "" back to where each task came from
//	  int32 rate = 4;      // tasks a second, 0 no limit
//	  string by = 5;       // name of the operator's key
//	}
func (c MoveTasks) code(f fields) (Command, fields) {
	f.Text(1, &c.Type)
	f.Uint(2, &c.Cancel)
	f.Text(3, &c.To)
	f.Int32(4, &c.Rate)
	f.Text(5, &c.By)
	return done(c, &f)
}
