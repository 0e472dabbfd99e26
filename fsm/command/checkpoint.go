package command

// Checkpoint changes nothing: each node notes the hash of its state at the
// entry's index, and the leader compares them.
type Checkpoint struct{}

func (Checkpoint) kind() Kind { return KindCheckpoint }

func (Checkpoint) about() About { return About{} }

// appendBody appends
//
//	message Checkpoint {}
func (Checkpoint) appendBody(b []byte) []byte { return b }

func (c Checkpoint) decode(r fieldReader) (Command, error) {
	r.None()
	return c, r.Err
}
