package command

// Cancel ends an unclaimed task as cancelled; on a claimed one it records the request.
// Cancelling a parent does so with each step, and the parent ends with the last of them.
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
