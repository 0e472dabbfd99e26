package command

// Tick moves the clocks on and does what is due, a bounded amount of it.
type Tick struct{}

func (Tick) kind() Kind { return KindTick }

func (Tick) about() About { return About{} }

// code goes through the fields of
//
//	message Tick {}
func (c Tick) code(f fields) (Command, []byte, error) {
	return done(c, &f)
}
