package command

// Cancel ends a task that is not claimed as cancelled; of a claimed one it is
// noted that this was asked. Of a parent it does so with each step, and ends the
// parent with the last.
type Cancel struct{ ID uint64 }

func (Cancel) kind() Kind { return KindCancel }

func (c Cancel) about() About { return About{Known: true, ID: c.ID, Changes: 1} }

// code goes through the fields of
//
//	message Cancel {
//	  uint64 id = 1;
//	}
func (c Cancel) code(f fields) (Command, []byte, error) {
	f.ID(1, &c.ID)
	return done(c, &f)
}
