package command

// Tick advances the clocks and does a bounded amount of what is due.
type Tick struct{}

func (Tick) kind() Kind { return KindTick }

func (Tick) about() About { return About{} }

// code goes through the fields of
//
//	message Tick {}
func (c Tick) code(f fields) (Command, []byte, error) {
	return done(c, &f)
}
