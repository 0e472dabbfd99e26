package fsm

// Operator is who asks a node for an act: the name of an API key, and the key itself, by
// which another node finds out for itself who that is. The zero value is nobody, where
// there are no keys. It is never part of a command.
type Operator struct {
	Name string
	Key  string
}
