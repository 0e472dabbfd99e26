package command

// Checkpoint changes nothing: each node notes the hash of its state at the
// entry's index, and the leader compares them.
type Checkpoint struct{}

func (Checkpoint) kind() Kind { return KindCheckpoint }

func (Checkpoint) about() About { return About{} }

// code goes through the fields of
//
//	message Checkpoint {}
func (c Checkpoint) code(f fields) (Command, []byte, error) {
	return done(c, &f)
}
