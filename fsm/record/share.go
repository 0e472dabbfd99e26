package record

import (
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
)

// SharesSetMax bounds how many shares have settings.
const SharesSetMax = 10_000

// ShareSettings are the settings of one share: of the tasks of one type with the same share key.
// A zero value leaves the setting to the type.
type ShareSettings struct {
	Paused     bool
	MaxClaimed int32 // simultaneous claims
	Weight     int32 // how many turns it gets in a fair type, compared with others; 0 = DefaultWeight
	RateLimit  int64 // in millionths of a claim per second
}

// Code reads or writes field num, a message.
func (s *ShareSettings) Code(f *Fields, num protowire.Number) {
	m, ok := f.Message(num, *s != (ShareSettings{}))
	if !ok {
		return
	}
	f.Bool(1, &s.Paused)
	f.Int32(2, &s.MaxClaimed)
	f.Int32(3, &s.Weight)
	f.Int(4, &s.RateLimit)
	f.EndMessage(m)
}

// Share is the saved part of a share: its settings and the state of its rate limit. It is saved,
// under a number, while it has either.
type Share struct {
	Type     string
	Key      string
	Settings ShareSettings
	// Spent says how much is missing in the bucket of its rate limit, in billionths of a claim, as of
	// SpentT by T. Both are 0 if the bucket is full.
	Spent  int64
	SpentT int64
}

// IsNothing reports whether the share need not be saved.
func (s *Share) IsNothing() bool { return s.Settings == (ShareSettings{}) && s.Spent == 0 }

// ShareRecordBytes estimates the memory of a saved share with its places in indexes.
const ShareRecordBytes = 250

// AppendShare appends the record of the share with that number.
func AppendShare(b []byte, number uint64, s *Share) []byte {
	f := To(b)
	f.share(&number, s)
	return f.Out
}

// ReadShare reads the record.
func ReadShare(f *Fields) (number uint64, _ *Share) {
	s := &Share{}
	f.share(&number, s)
	_ = f.End() // the caller checks f.Err
	return number, s
}

func (f *Fields) share(number *uint64, s *Share) {
	f.ID(1, number)
	f.interned(2, &s.Type)
	f.interned(3, &s.Key)
	s.Settings.Code(f, 4)
	f.Int(5, &s.Spent)
	f.Int(6, &s.SpentT)
}

// SpentAt returns what is missing in the bucket at t. Time that goes back adds nothing.
func (s *Share) SpentAt(rateLimit, t int64) int64 {
	hi, grown := bits.Mul64(uint64(rateLimit), uint64(max(t-s.SpentT, 0)))
	if hi > 0 || grown >= uint64(s.Spent) {
		return 0
	}
	return s.Spent - int64(grown)
}

// ShareClaimsAt returns how many whole claims the bucket holds at t. A share that is nil has a
// full one.
func ShareClaimsAt(s *Share, rateLimit, t int64) int64 {
	if rateLimit <= 0 {
		return NoLimit
	}
	left := burst(rateLimit)
	if s != nil {
		left -= s.SpentAt(rateLimit, t)
	}
	return left / ClaimUnit
}

// ShareClaimableAt returns when the bucket holds a whole claim: t or later.
func ShareClaimableAt(s *Share, rateLimit, t int64) int64 {
	if s == nil || rateLimit <= 0 {
		return t
	}
	return after(t, s.SpentAt(rateLimit, t)-(burst(rateLimit)-ClaimUnit), rateLimit)
}

// FullAt returns when the bucket is full.
func (s *Share) FullAt(rateLimit int64) int64 { return after(s.SpentT, s.Spent, rateLimit) }

// Spend takes one claim out of the bucket, which must hold one.
func (s *Share) Spend(rateLimit, t int64) {
	s.Spent, s.SpentT = s.SpentAt(rateLimit, t)+ClaimUnit, max(t, s.SpentT)
}

// SetRate changes the limit from was. What was spent stays spent, up to the new capacity.
func (s *Share) SetRate(was, rateLimit, t int64) {
	if s.Spent == 0 || rateLimit == was {
		return
	}
	s.Spent, s.SpentT = s.SpentAt(was, t), max(t, s.SpentT)
	if rateLimit <= 0 {
		s.Spent = 0
	}
	s.Spent = min(s.Spent, burst(rateLimit))
	if s.Spent == 0 {
		s.SpentT = 0
	}
}

// DefaultWeight is the weight of a share without one of its own.
const DefaultWeight = 100

// Turn is a saved part of the order in which the shares of a fair type take turns: the tag of a
// share at a priority, or the clock of a priority. It is saved under a number: of equal tags the
// one with the lowest number is next. A tag or clock with its first value is not saved. Package
// index explains both.
type Turn struct {
	Type     string
	ShareKey string // "" = the tasks without one
	Priority int32
	Clock    bool
	Value    uint64
}

// The memory of turns.
const (
	TurnBytes      = 112 // of a saved turn, and of the tag or clock in the indexes
	TurnPlaceBytes = 9   // of a place in a page of them
	FairBytes      = 55  // of the place of a share of a fair type among the others
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
	f.interned(2, &t.Type)
	f.interned(3, &t.ShareKey)
	f.Sint(4, &t.Priority)
	f.Bool(5, &t.Clock)
	f.Uint(6, &t.Value)
}
