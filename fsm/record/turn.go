package record

// DefaultWeight is the weight of a share without one of its own.
const DefaultWeight = 100

// Turn is a part of the order in which the shares of a fair type take turns: the tag of a
// share at a priority, or the clock of a priority. It is saved under a number: of equal tags the
// one with the lowest number is next. First values are not saved.
type Turn struct {
	Type     string
	ShareKey string // "" = the tasks without one
	Priority int32
	Clock    bool
	Value    uint64
}

// The memory of turns.
const (
	TurnBytes      = 112 // of a saved turn, and of the tag or clock that is not the first any more
	TurnPlaceBytes = 9   // of a place in a page of them
	FairBytes      = 55  // of a share of a fair type, for its place among the others
)

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
	f.Bool(5, &t.Clock)
	f.Uint(6, &t.Value)
}
