package record

// Turn is the place of a share in the order in which the shares of a fair type take turns: of
// those that have claimable tasks of one priority, the one with the lowest number is next. It is
// saved under its number.
type Turn struct {
	Type     string
	ShareKey string // "" = the tasks without one
	Priority int32
}

// TurnBytes estimates the memory of a turn with its places in indexes.
const TurnBytes = 350

// AppendTurn appends the record of the turn with that number.
func AppendTurn(b []byte, number uint64, t *Turn) []byte {
	f := To(b)
	f.turn(&number, t)
	return f.Out
}

// ReadTurn reads the record.
func ReadTurn(f *Fields) (number uint64, _ *Turn) {
	t := &Turn{}
	f.turn(&number, t)
	_ = f.End() // the caller checks f.Err
	return number, t
}

func (f *Fields) turn(number *uint64, t *Turn) {
	f.ID(1, number)
	f.known(2, &t.Type)
	f.known(3, &t.ShareKey)
	f.Sint(4, &t.Priority)
}
