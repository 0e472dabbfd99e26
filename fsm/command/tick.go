package command

// Tick moves the clocks on and does what is due, a bounded amount of it.
type Tick struct{}

func (Tick) kind() Kind { return KindTick }

func (Tick) about() About { return About{} }

// appendBody appends
//
//	message Tick {}
func (Tick) appendBody(b []byte) []byte { return b }

func (c Tick) decode(r fieldReader) (Command, error) {
	r.None()
	return c, r.Err
}
