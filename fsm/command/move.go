package command

// MoveTasks starts to move the waiting tasks of a type with settings to another type, or with Cancel
// ends such a move. It moves nothing itself: ticks do. Result.Type is the type afterwards. It is
// refused if the type has a move already, or not the one to cancel.
type MoveTasks struct {
	Type   string
	Cancel uint64 // number of the move to cancel; 0: it starts one
	To     string // "" = back to where each task came from
	Rate   int32  // tasks a second; 0 = no limit
	By     string // as in SetType
}

func (MoveTasks) kind() Kind { return KindMoveTasks }

func (c MoveTasks) about() About { return About{Known: true, Type: c.Type, DeadLetter: c.To} }

// code goes through the fields of
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
