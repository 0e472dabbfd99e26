package command

// Checkpoint changes nothing. Each node records the hash of its state at the entry's index,
// so that the leader can compare them.
type Checkpoint struct{}

func (Checkpoint) kind() Kind { return KindCheckpoint }

func (Checkpoint) about() About { return About{} }

// code goes through the fields of
//
//	message Checkpoint {}
func (c Checkpoint) code(f fields) (Command, []byte, error) {
	return done(c, &f)
}
