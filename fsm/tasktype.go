package fsm

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/wire"
)

// SetType changes the settings of a task type: those whose bit is in Set. The
// zero value of a setting clears it.
type SetType struct {
	Type     string
	Set      TypeFields
	Settings TypeSettings
	By       string // the operator's key, for the trail; "" = open mode
}

func (SetType) kind() kind                           { return kindSetType }
func (c SetType) about() About                       { return About{Known: true, Type: c.Type} }
func (c SetType) needs() uint32                      { return needsBy(c.By) }
func (c SetType) applyTo(m *Machine) (Result, error) { return m.setType(c), nil }

// TypeFields is a set of the fields of TypeSettings.
type TypeFields uint32

// The fields. The numbers are in the log and never change.
const (
	TypePaused TypeFields = 1 << iota
	TypeMaxClaimed
	TypeRateLimit
	TypeLease
	TypeMaxAttempts
	TypeBackoff
	TypeRetention
	typeFieldsAll TypeFields = 1<<iota - 1
)

// TypeSettings are the settings of a task type. Pause and limits concern claims
// only: what is claimed goes on.
type TypeSettings struct {
	Paused     bool
	MaxClaimed int32 // claims at a time; 0 = no limit
	// RateLimit is in millionths of a claim per second; 0 = no limit.
	RateLimit int64
	// Defaults of its tasks. What is not set, the server's defaults say.
	LeaseMS     int64    // 0: not set
	LimitSet    bool     // MaxAttempts is set
	MaxAttempts int32    // 0 = no limit
	Backoff     *Backoff // nil: not set
	RetentionMS int64    // as in NewTask
}

// typeRecordsMax bounds how many types have settings: a snapshot copies them
// while nobody is served.
const typeRecordsMax = 10_000

// typeRecord is what is saved of a task type that has settings.
type typeRecord struct {
	Name     string
	Settings TypeSettings
	// Bucket holds what the rate limit lets be claimed, in billionths of a
	// claim, as of BucketT by T. Both are 0 without a rate limit.
	Bucket  int64
	BucketT int64
}

// cloneTypes copies the records for a snapshot.
func cloneTypes(types []*typeRecord) []*typeRecord {
	all := make([]typeRecord, len(types))
	copies := make([]*typeRecord, len(types))
	for i, t := range types {
		all[i] = *t
		copies[i] = &all[i]
	}
	return copies
}

// setType changes the settings of a type. A type whose settings are all cleared
// has no record.
func (m *Machine) setType(c SetType) Result {
	settings := *m.settingsOf(c.Type)
	settings.change(c)
	at, known := m.findRecord(c.Type)
	changed := !settings.equal(m.settingsOf(c.Type))
	switch {
	case known:
	case settings == (TypeSettings{}):
		return m.typeResult(c.Type)
	case len(m.settings) >= typeRecordsMax:
		return Result{Code: CodeInvalidRequest}
	default:
		ts := m.typeOf(c.Type)
		ts.record = &typeRecord{Name: ts.name}
		m.settings = slices.Insert(m.settings, at, ts.record)
	}
	ts := m.types[c.Type]
	ts.record.setRate(settings.RateLimit, m.header.Stamp.T)
	ts.record.Settings = settings
	if settings == (TypeSettings{}) {
		m.settings = slices.Delete(m.settings, at, at+1)
		ts.record = nil
	}
	ts.added = ts.ready // what other limits let be claimed is news
	m.place(ts)
	m.dropType(ts)
	if changed {
		m.tellBy(event.TypeChanged, c.Type, c.By)
	}
	return m.typeResult(c.Type)
}

// equal reports whether the settings are the same.
func (s *TypeSettings) equal(other *TypeSettings) bool {
	a, b := *s, *other
	if a.Backoff == nil || b.Backoff == nil {
		return a == b
	}
	same := *a.Backoff == *b.Backoff
	a.Backoff, b.Backoff = nil, nil
	return same && a == b
}

// change takes over those settings of c that it sets.
func (s *TypeSettings) change(c SetType) {
	if c.Set&TypePaused != 0 {
		s.Paused = c.Settings.Paused
	}
	if c.Set&TypeMaxClaimed != 0 {
		s.MaxClaimed = c.Settings.MaxClaimed
	}
	if c.Set&TypeRateLimit != 0 {
		s.RateLimit = c.Settings.RateLimit
	}
	if c.Set&TypeLease != 0 {
		s.LeaseMS = c.Settings.LeaseMS
	}
	if c.Set&TypeMaxAttempts != 0 {
		s.LimitSet, s.MaxAttempts = c.Settings.LimitSet, c.Settings.MaxAttempts
	}
	if c.Set&TypeBackoff != 0 {
		s.Backoff = c.Settings.Backoff
	}
	if c.Set&TypeRetention != 0 {
		s.RetentionMS = c.Settings.RetentionMS
	}
}

// findRecord returns the place of the type's record, or where it would have to
// be.
func (m *saved) findRecord(name string) (at int, known bool) {
	return slices.BinarySearchFunc(m.settings, name, func(r *typeRecord, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// settingsOf returns the settings of the type, read-only; the zero value if it
// has none.
func (m *derived) settingsOf(name string) *TypeSettings {
	ts := m.typeNamed(name)
	if ts == nil || ts.record == nil {
		return &noSettings
	}
	return &ts.record.Settings
}

// noSettings is what settingsOf returns of most types. It is never changed.
var noSettings TypeSettings

// dropType forgets a type that has neither tasks nor settings.
func (m *Machine) dropType(ts *typeState) {
	if ts.tasks > 0 || ts.record != nil {
		return
	}
	if m.undo != nil {
		m.undo.dropped = append(m.undo.dropped, ts)
	}
	delete(m.types, ts.name)
	m.ready.Remove(&ts.Contender)
	m.fall(ts)
	m.typesChanged++
	m.recent = nil
	m.byName.Delete(ts.name)
	if ts.noted < len(m.noted) && m.noted[ts.noted].Type == ts.name {
		if m.notedGone == nil {
			m.notedGone = map[string]int{}
		}
		m.notedGone[ts.name] = ts.noted
	}
}

// typeResult is the result that shows the type. It has no rates: results are the
// same on all nodes.
func (m *Machine) typeResult(name string) Result {
	v, _ := m.Type(name, m.header.Stamp)
	v.SubmittedPerS, v.CompletedPerS, v.FailedPerS = 0, 0, 0
	return Result{Type: &v}
}

// findOldest returns the id of the pending task that was submitted first, 0 if
// none is pending.
func (ts *typeState) findOldest() uint64 {
	id, _ := ts.first.First(index.Oldest)
	if held, ok := ts.behind.Min(); ok && (id == 0 || held < id) {
		id = held
	}
	return id
}

func (c SetType) appendBody(b []byte) []byte {
	b = wire.PutString(b, 1, c.Type)
	b = wire.PutUint(b, 2, uint64(c.Set))
	b = appendTypeSettings(b, 3, &c.Settings)
	return wire.PutString(b, 4, c.By)
}

func (SetType) decode(r fieldReader) (Command, error) {
	var c SetType
	for r.Next() {
		switch r.Num {
		case 1:
			c.Type = r.Text()
		case 2:
			c.Set = TypeFields(r.Uint32())
			if c.Set&^typeFieldsAll != 0 && r.Err == nil {
				r.Err = fmt.Errorf("%w: setting of a type in %b", ErrUnknownCommand, c.Set)
			}
		case 3:
			in := fieldsOf(r.Single())
			c.Settings = decodeTypeSettings(&in)
			r.Within(in.Err)
		case 4:
			c.By = r.Text()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}

// appendTypeSettings appends the field num, a message.
func appendTypeSettings(b []byte, num protowire.Number, s *TypeSettings) []byte {
	mark := len(b)
	b, start := wire.BeginMessage(b, num)
	b = wire.PutBool(b, 1, s.Paused)
	b = wire.PutInt(b, 2, int64(s.MaxClaimed))
	b = wire.PutInt(b, 3, s.RateLimit)
	b = wire.PutInt(b, 4, s.LeaseMS)
	b = wire.PutBool(b, 5, s.LimitSet)
	b = wire.PutInt(b, 6, int64(s.MaxAttempts))
	b = appendBackoff(b, 7, s.Backoff)
	return wire.EndOptional(wire.PutSint64(b, 8, s.RetentionMS), mark, start)
}

func decodeTypeSettings(r *fieldReader) (s TypeSettings) {
	for r.Next() {
		switch r.Num {
		case 1:
			s.Paused = r.Bool()
		case 2:
			s.MaxClaimed = r.Int32()
		case 3:
			s.RateLimit = r.Int64()
		case 4:
			s.LeaseMS = r.Int64()
		case 5:
			s.LimitSet = r.Bool()
		case 6:
			s.MaxAttempts = r.Int32()
		case 7:
			s.Backoff = r.backoff()
		case 8:
			s.RetentionMS = r.Sint64()
		default:
			r.Unknown()
		}
	}
	return s
}
