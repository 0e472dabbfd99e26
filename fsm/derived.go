package fsm

import (
	"fmt"

	"github.com/claimq/claimq/fsm/claimable"
	"github.com/claimq/claimq/fsm/index"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/sorted"
)

// derived is everything computed from the saved state. Machine.rebuild computes it again
// from that alone, with the same result.
type derived struct {
	parents         map[uint64]*parentState           // by the parent's id
	counts          [record.StatusCancelled + 1]int64 // by Status
	types           claimable.Types                   // with tasks or settings; Type.Of is a typeState
	keys            *index.Names                      // name of an idempotency key to task id
	claims          sorted.Map[uint64, claimRef]      // live claims by token
	holdings        index.Holdings                    // live claims by worker and by type
	slots           sorted.List[*record.ScheduleView] // schedules by their next slot
	requestIDs      *index.Names                      // claim_request_id to sequence number
	forgetting      index.Timeline                    // requests without a live claim, by ForgetU
	remembered      int                               // claims in all requests
	bytes           int64                             // the estimate of Bytes
	rememberedBytes int64                             // the part of it for requests and removed tasks
	times

	// These count the tasks of all types, also of types that are gone.
	rates     typeRates
	latencies Latencies
	followed  sorted.Map[string, *typeState] // types whose latencies are counted
	went      wentTypes
}

// claimRef is the entry of a claim in the index of live claims.
type claimRef struct {
	task    uint64 // id
	request uint64 // sequence number of its claim request, 0 if none is remembered
	place   uint32 // in Machine.holdings
}

// resetIndexes empties everything derived.
func (m *derived) resetIndexes() {
	m.counts = [record.StatusCancelled + 1]int64{}
	m.types.Reset()
	m.followed = sorted.NewMap[string, *typeState]()
	m.went = newWentTypes()
	m.keys = index.NewNames()
	m.parents = map[uint64]*parentState{}
	m.claims = sorted.NewMap[uint64, claimRef]()
	m.holdings = index.NewHoldings()
	m.requestIDs = index.NewNames()
	m.forgetting = index.NewTimeline()
	m.slots = newSlots()
	m.resetTimes()
	m.remembered = 0
	m.bytes, m.rememberedBytes = 0, 0
}

// rebuild computes everything derived from what is saved. Errors: ErrCorrupt, wrapped, if
// the saved records contradict each other.
func (m *Machine) rebuild() error {
	m.resetIndexes()
	for id, t := range m.tasks.All() {
		if problem := m.indexTask(id, t); problem != "" {
			return contradiction(record.KindTask, id, problem)
		}
	}
	return m.rebuildRest()
}

// rebuildRest does the part of rebuild that follows the tasks.
func (m *Machine) rebuildRest() error {
	for _, r := range m.settings {
		m.types.Limit(&m.typeOf(r.Name).Type, r, m.Stamp().T)
	}
	for seq, r := range m.requests.All() {
		if problem := m.indexRequest(seq, r); problem != "" {
			return contradiction(record.KindRequest, seq, problem)
		}
	}
	for id, g := range m.gone.All() {
		if problem := m.indexGone(id, g); problem != "" {
			return contradiction(record.KindGone, id, problem)
		}
	}
	for _, v := range m.schedules {
		m.includeSchedule(v)
	}
	if problem := m.trail.Index(m.trailLimits()); problem != "" {
		return fmt.Errorf("trail: %s: %w", problem, ErrCorrupt)
	}
	m.types.TakeNoted() // no claim waited for what was there
	return nil
}

// indexTask adds a saved task to everything derived. It returns what is wrong with the
// task, or "".
func (m *Machine) indexTask(id uint64, t *record.Task) (problem string) {
	switch {
	case t.ID != id || id == 0 || id >= m.header.NextID:
		return "it has another id than its place, or one that was never given out"
	case t.Status == 0 || t.Status > record.StatusCancelled:
		return "it has no known status"
	case t.Token >= m.header.NextToken:
		return "its token was never given out"
	case t.Status == record.StatusClaimed && (t.Token == 0 || len(t.Log) == 0):
		return "it is claimed without a token or an attempt"
	}
	if problem := m.attachSteps(t); problem != "" {
		return problem
	}
	if record.HoldsKey(t) && m.byKeyName(t.KeyName()) != nil {
		return "its key is another's"
	}
	if t.Status == record.StatusClaimed {
		if _, twice := m.claims.Get(t.Token); twice {
			return "its token is another's"
		}
	}
	ts := m.include(t)
	if t.Status == record.StatusClaimed {
		m.claims.Set(t.Token, claimRef{task: id, place: m.holdings.Hold(&ts.held, t.WorkerID, t.ID)})
	}
	return ""
}

// unindexTask undoes indexTask. It returns the token of the task's claim with its claim
// request, whose number is 0 if there is none.
func (m *Machine) unindexTask(t *record.Task) (h holder) {
	if t.Status == record.StatusClaimed {
		ref, _ := m.claims.Delete(t.Token)
		m.holdings.LetGo(&m.typeNamed(t.Type).held, ref.place)
		h = holder{t.Token, ref.request}
	}
	m.exclude(t)
	return h
}

// indexRequest adds a saved claim request to everything derived, after all tasks. It
// returns what is wrong with the request, or "".
func (m *Machine) indexRequest(seq uint64, r *record.Request) (problem string) {
	if seq == 0 || seq >= m.header.NextRequest {
		return "its number was never given out"
	}
	if known, _ := m.requestOf(r.ID); known != nil {
		return "its id is another's"
	}
	live := int32(0)
	for _, c := range r.Claims {
		ref, ok := m.claims.Get(c.Token)
		if !ok || ref.task != c.TaskID {
			continue
		}
		if ref.request != 0 {
			return "another one has its claim"
		}
		ref.request = seq
		m.claims.Set(c.Token, ref)
		live++
	}
	if live != r.Live || len(r.Claims) == 0 {
		return "its claims are not those that live"
	}
	if live == 0 {
		m.forgetting.Add(r.ForgetU, seq)
	}
	m.requestIDs.Add(r.ID, seq)
	m.remembered += len(r.Claims)
	m.addRemembered(record.BytesOfRequest(r))
	return ""
}
