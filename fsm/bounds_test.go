package fsm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// harness applies commands one by one, with checks.
type harness struct {
	t     *testing.T
	m     *Machine
	stamp record.Stamp
}

func newHarness(t *testing.T) *harness {
	return &harness{t: t, m: newRestful(), stamp: record.Stamp{T: 1_700_000_000_000}}
}

func (h *harness) do(c command.Command) Result {
	h.t.Helper()
	a := mustApplyTo(h.t, h.m, testEntry{Index: h.m.Index() + 1, Stamp: h.stamp, Commands: []command.Command{c}})
	return a.Results[0]
}

func (h *harness) submit(n int, task record.NewTask) {
	h.t.Helper()
	h.do(command.Submit{Tasks: slices.Repeat([]record.NewTask{task}, n)})
}

// TestClaimNext_AnswerStopsAt8MiB ensures that an answer's params and payloads
// stay below the bound, and that one task always fits.
func TestClaimNext_AnswerStopsAt8MiB(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(9, record.NewTask{Type: "mail", Payload: make([]byte, 1<<20)})
	if r := h.do(command.ClaimNext{WorkerID: "w1", Limit: 100}); len(r.Claims) != 8 {
		t.Errorf("%d tasks of 1 MiB in an answer, want 8", len(r.Claims))
	}
	h.submit(1, record.NewTask{Type: "huge", Payload: make([]byte, 9<<20)})
	if r := h.do(command.ClaimNext{WorkerID: "w1", Types: []string{"huge"}, Limit: 100}); len(r.Claims) != 1 {
		t.Errorf("%d tasks of 9 MiB in an answer, want 1", len(r.Claims))
	}
	mustCheck(t, h.m)
}

// TestErrors_CountForAnAnswersBound ensures that the texts of failures, which
// escapes make up to six times as long in JSON, count for the bounds of claims
// and lists.
func TestErrors_CountForAnAnswersBound(t *testing.T) {
	t.Parallel()
	for text, quoted := range map[string]int{"\x01": 6, `"`: 2, `\`: 2, "x": 1} {
		const length = 16 << 10
		fits := answerBytesMax / (quoted * length)
		h := newHarness(t)
		h.submit(2*fits, record.NewTask{Type: "mail", Payload: []byte("p"), MaxAttempts: 9})
		for _, c := range h.do(command.ClaimNext{WorkerID: "w1", Limit: int32(2 * fits)}).Claims {
			h.do(command.Fail{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}, Error: strings.Repeat(text, length)})
		}
		claim := command.ClaimNext{WorkerID: "w1", Limit: int32(2 * fits), RequestID: "q"}
		first := h.do(claim).Claims
		if len(first) > fits || len(first) < fits-1 {
			t.Errorf("%q: %d tasks in an answer, want %d", text, len(first), fits)
		}
		for _, c := range first {
			h.do(command.Complete{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}, Result: []byte("1")})
		}
		size := 0
		for _, c := range h.do(claim).Claims {
			size += record.AnswerBytes(c.Task)
		}
		if size > answerBytesMax {
			t.Errorf("%q: %d bytes in a repeated answer", text, size)
		}
		if page := h.m.List(ListQuery{Limit: pageTasksMax}); len(page.Tasks) > fits || page.Next == 0 {
			t.Errorf("%q: %d tasks on a page, want at most %d", text, len(page.Tasks), fits)
		}
		mustCheck(t, h.m)
	}
}

// TestClaimNext_RepeatedAnswerIsBounded ensures that a repeat does not bring
// more than 8 MiB although its tasks have got results meanwhile.
func TestClaimNext_RepeatedAnswerIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(20, record.NewTask{Type: "mail", Payload: []byte("p")})
	claim := command.ClaimNext{WorkerID: "w1", Limit: 20, RequestID: "q1"}
	first := h.do(claim)
	for _, c := range first.Claims[1:] {
		h.do(command.Complete{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}, Result: make([]byte, 1<<20)})
	}
	size, bare := 0, 0
	again := h.do(claim)
	for i, c := range again.Claims {
		size += record.AnswerBytes(c.Task)
		if c.Task.Payload == nil {
			bare++
		}
		if c.Task.ID != first.Claims[i].Task.ID || c.Token != first.Claims[i].Token || c.Live != (i == 0) {
			t.Errorf("claim %d is %d token %d live %v", i, c.Task.ID, c.Token, c.Live)
		}
	}
	if size > answerBytesMax || bare != 12 {
		t.Errorf("%d bytes, %d tasks without theirs, want at most 8 MiB and 12", size, bare)
	}
}

// TestBatch_AnswerIsBounded ensures that the ops of a batch share the bound of
// one answer: claims that find it full take nothing, other tasks come bare.
func TestBatch_AnswerIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	h.submit(40, record.NewTask{Type: "mail", Payload: make([]byte, 1<<20)})
	var claims, others []command.Command
	for range 20 {
		claims = append(claims, command.ClaimNext{WorkerID: "w1", Limit: 3})
	}
	var taken []Claim
	for _, r := range h.do(command.Batch{Ops: claims}).Results {
		taken = append(taken, r.Claims...)
	}
	if len(taken) != 8 || h.m.ClaimCount() != 8 {
		t.Errorf("%d tasks of 1 MiB in an answer, %d claimed, want 8", len(taken), h.m.ClaimCount())
	}
	if r := h.do(command.ClaimNext{WorkerID: "w1", Limit: 2}); len(r.Claims) != 2 {
		t.Errorf("%d tasks claimed after the batch, want 2", len(r.Claims))
	}
	for range 2 {
		for _, c := range taken {
			others = append(others, command.Extend{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}})
		}
	}
	whole, bare := 0, 0
	for _, r := range h.do(command.Batch{Atomic: true, Ops: others}).Results {
		if r.Task.Payload == nil {
			bare++
		} else {
			whole++
		}
	}
	if whole != 8 || bare != 8 {
		t.Errorf("%d tasks are shown whole and %d bare, want 8 and 8", whole, bare)
	}
	if h.m.Get(1).Payload == nil {
		t.Error("the task itself was laid bare")
	}
	if r := h.do(command.ClaimNext{WorkerID: "w1", Limit: 2}); len(r.Claims) != 2 {
		t.Errorf("%d tasks claimed after the atomic batch, want 2", len(r.Claims))
	}
	mustCheck(t, h.m)
}

// TestBatch_BareTasksAreCopies ensures that a snapshot keeps the data of tasks
// that a batch deletes and shows without it.
func TestBatch_BareTasksAreCopies(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	h.submit(12, record.NewTask{Type: "mail", Payload: make([]byte, 1<<20)})
	var deletes []command.Command
	for id := range uint64(12) {
		h.do(command.Cancel{ID: id + 1})
		deletes = append(deletes, command.Delete{ID: id + 1})
	}
	s := h.m.Snapshot()
	defer s.Release()
	want := s.Hash()
	if r := h.do(command.Batch{Ops: deletes}); r.Results[11].Task.Payload != nil {
		t.Error("the last task is shown whole")
	}
	if s.Hash() != want {
		t.Error("the snapshot lost data")
	}
	mustCheck(t, h.m)
}

// TestBatch_RepeatedClaimsAreBounded ensures that one request, repeated by every
// op, does not bring its tasks as often.
func TestBatch_RepeatedClaimsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(command.SetLevel{Level: 1})
	h.submit(8, record.NewTask{Type: "mail", Payload: make([]byte, 1<<20)})
	claim := command.ClaimNext{WorkerID: "w1", Limit: 8, RequestID: "q"}
	h.do(claim)
	ops := make([]command.Command, 100)
	for i := range ops {
		ops[i] = claim
	}
	size := 0
	for i, r := range h.do(command.Batch{Ops: ops}).Results {
		if len(r.Claims) != 8 || !r.Claims[7].Live {
			t.Fatalf("op %d: %d claims", i, len(r.Claims))
		}
		for _, c := range r.Claims {
			size += record.AnswerBytes(c.Task)
		}
	}
	if size > 2*answerBytesMax || size < answerBytesMax {
		t.Errorf("%d bytes in the answer", size)
	}
	for id, task := range h.m.tasks.All() {
		if len(task.Payload) != 1<<20 {
			t.Errorf("task %d itself has lost its payload", id)
		}
	}
}

// TestTick_ForgetsABoundedNumber ensures that one tick does not stop the world
// when very many claim requests are due, and that answers do not depend on how
// far ticks have come.
func TestTick_ForgetsABoundedNumber(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const n = forgetTickMax + 500
	h.submit(n, record.NewTask{Type: "mail", Payload: []byte("p")})
	for i := range n {
		c := h.do(command.ClaimNext{WorkerID: "w1", Limit: 1, RequestID: fmt.Sprint(i)}).Claims[0]
		h.do(command.Complete{Hold: command.Hold{ID: c.Task.ID, WorkerID: "w1", Token: c.Token}})
	}
	h.stamp.U = rememberMS
	h.do(command.Tick{})
	if got := h.m.requests.table.Len(); got != 500 {
		t.Errorf("%d requests after a tick, want 500", got)
	}
	mustCheck(t, h.m)
	if r := h.do(command.ClaimNext{WorkerID: "w1", Limit: 1, RequestID: fmt.Sprint(n - 1)}); r.Repeated {
		t.Error("a request was repeated after its time")
	}
	h.do(command.Tick{})
	if got := h.m.requests.table.Len() + h.m.requests.forgetting.Len() + h.m.requests.ids.Len(); got != 0 {
		t.Errorf("%d left of forgotten requests", got)
	}
	mustCheck(t, h.m)
}

// TestClaimNext_OldestRequestsMakeRoom ensures the bound on what is
// remembered, also of claims that are live.
func TestClaimNext_OldestRequestsMakeRoom(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.m.requests.max = 10
	h.submit(30, record.NewTask{Type: "mail", Payload: []byte("p")})
	for i := range 6 {
		h.do(command.ClaimNext{WorkerID: "w1", Limit: 3, RequestID: fmt.Sprint(i)})
		mustCheck(t, h.m)
	}
	second := claimCall{id: "2"}
	if h.m.requests.find(&second, h.stamp.U); second.seq != 0 || h.m.requests.claims != 9 {
		t.Errorf("request 2 is number %d of %d claims, want it forgotten and 9", second.seq, h.m.requests.claims)
	}
	if r := h.do(command.ClaimNext{WorkerID: "w1", Limit: 3, RequestID: "3"}); !r.Repeated {
		t.Error("request 3 is forgotten")
	}
	if r := h.do(command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w1", Token: 1}}); r.Code != "" {
		t.Errorf("a claim of a forgotten request: %s", r.Code)
	}
	mustCheck(t, h.m)
}

// TestClaimNext_ManyCallsShareAnID ensures that no record of a claim request grows beyond
// its bound, in whatever order the calls of its id come, and that each is repeated.
func TestClaimNext_ManyCallsShareAnID(t *testing.T) {
	t.Parallel()
	const places, each = 30, 150
	h := newHarness(t)
	h.submit(places*each, record.NewTask{Type: "mail", Payload: []byte("p")})
	claim := func(place int) command.ClaimNext {
		return command.ClaimNext{WorkerID: "w1", Limit: each, RequestID: "r", RequestPlace: uint32(place)}
	}
	first := map[int][]record.ClaimRef{}
	for i := range places {
		place := (places - i) * 7 % places // neither ascending nor descending
		first[place] = refsOf(h.do(claim(place)).Claims)
	}
	mustCheck(t, h.m)
	sizes := []int{}
	for _, q := range h.m.requests.table.All() {
		sizes = append(sizes, len(q.Claims))
	}
	if diff := cmp.Diff([]int{7 * each, 7 * each, 7 * each, 7 * each, 2 * each}, sizes); diff != "" {
		t.Errorf("claims of the records (-want +got):\n%s", diff)
	}
	h.m = restoredLike(t, h.m)
	for place := range places {
		r := h.do(claim(place))
		if diff := cmp.Diff(first[place], refsOf(r.Claims)); !r.Repeated || diff != "" {
			t.Fatalf("place %d, repeated %v (-first +again):\n%s", place, r.Repeated, diff)
		}
	}
	other := claim(3)
	other.Limit++
	if r := h.do(other); r.Code != CodeInvalidRequest {
		t.Errorf("another claim at a place that is taken: %+v", r)
	}
}

// TestList_LooksAtABoundedNumber ensures that a page that finds nothing ends.
func TestList_LooksAtABoundedNumber(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(pageRecordsMax, record.NewTask{Type: "mail", Payload: []byte("p")})
	h.submit(1, record.NewTask{Type: "scan", Payload: []byte("p")})
	page := h.m.List(ListQuery{Filter: record.Filter{Type: "scan"}, Limit: 10})
	if len(page.Tasks) != 0 || page.Next != pageRecordsMax+1 {
		t.Errorf("%d tasks, next %d", len(page.Tasks), page.Next)
	}
	page = h.m.List(ListQuery{Filter: record.Filter{Type: "scan"}, Limit: 10, From: page.Next})
	if len(page.Tasks) != 1 || page.Next != 0 {
		t.Errorf("%d tasks, next %d", len(page.Tasks), page.Next)
	}
}

// TestList_StopsAt8MiB ensures that a page of large tasks is short, and that
// one task always fits.
func TestList_StopsAt8MiB(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(9, record.NewTask{Type: "mail", Payload: make([]byte, 1<<20)})
	h.submit(1, record.NewTask{Type: "mail", Payload: make([]byte, 9<<20)})
	var sizes []int
	for q := (ListQuery{Limit: 1000, From: 1}); q.From != 0; {
		page := h.m.List(q)
		sizes = append(sizes, len(page.Tasks))
		q.From = page.Next
	}
	if diff := cmp.Diff([]int{7, 2, 1}, sizes); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestList_Looks ensures that pages made by several looks are those made by one.
func TestList_Looks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	large := record.NewTask{Type: "mail", Payload: make([]byte, 3<<20)}
	h.submit(4, large) // more than a page has room for
	h.submit(pageRecordsMax, record.NewTask{Type: "scan", Payload: []byte("p")})
	h.submit(40, record.NewTask{Type: "mail", Payload: []byte("p")})
	pages := func(q ListQuery) (pages [][]uint64) {
		for {
			var ids []uint64
			q.Looked, q.Bytes = 0, 0
			for of, full := q, false; !full; {
				page := h.m.List(of)
				for _, task := range page.Tasks {
					ids = append(ids, task.ID)
				}
				if q.Look > 0 && page.Looked-of.Looked > q.Look {
					t.Fatalf("a look at %d records", page.Looked-of.Looked)
				}
				of.From, of.FromAt, of.Limit, of.Looked, of.Bytes = page.Next, page.NextAt, of.Limit-len(page.Tasks), page.Looked, page.Bytes
				q.From, q.FromAt, full = page.Next, page.NextAt, page.Full || page.Next == 0
			}
			if pages = append(pages, ids); q.From == 0 {
				return pages
			}
		}
	}
	h.do(command.Cancel{ID: 2})
	h.do(command.Cancel{ID: 1})
	h.do(command.Cancel{ID: 4})
	for name, q := range map[string]ListQuery{
		"some":       {Filter: record.Filter{Type: "mail"}, Limit: 30},
		"descending": {Filter: record.Filter{Type: "mail"}, Limit: 1000, Descending: true},
		"by end":     {Filter: record.Filter{Type: "mail", Status: record.StatusCancelled}, Limit: 2, ByEnd: true},
		"all":        {Limit: 1000},
	} {
		want := pages(q)
		for _, look := range []int{1, 7, 500, pageRecordsMax} {
			if q.Look = look; look == 1 && name == "all" {
				continue
			}
			if diff := cmp.Diff(want, pages(q)); diff != "" {
				t.Errorf("%s, in looks at %d (-want +got):\n%s", name, look, diff)
			}
		}
		if len(want) < 2 {
			t.Errorf("%s: %d pages", name, len(want))
		}
	}
}

// TestApply_ResultsAreCopies ensures that what an entry answered stays what it
// was, whatever later entries do.
func TestApply_ResultsAreCopies(t *testing.T) {
	t.Parallel()
	m := New()
	var answers []Applied
	var shown []string
	for _, e := range randomLog(7, 300) {
		a := mustApplyTo(t, m, e)
		answers, shown = append(answers, a), append(shown, showApplied(a))
	}
	for i, a := range answers {
		if got := showApplied(a); got != shown[i] {
			t.Fatalf("the answer of entry %d became\n%s\nit was\n%s", a.Index, got, shown[i])
		}
	}
}

// showApplied shows all that the answer reaches, by value.
func showApplied(a Applied) string {
	s := fmt.Sprintf("%+v", a.Leases)
	for _, r := range a.Results {
		s += fmt.Sprintf("%s %v", r.Code, r.Repeated)
		for _, c := range r.Claims {
			s += fmt.Sprintf("%+v %d %v", *c.Task, c.Token, c.Live)
		}
		if r.Task != nil {
			s += fmt.Sprintf("%+v", *r.Task)
		}
		for _, b := range r.Submitted {
			s += fmt.Sprintf("%+v", *b.Task)
		}
	}
	return s
}

// TestMachine_ForgetsTypes ensures that types cost nothing once their tasks
// are gone.
func TestMachine_ForgetsTypes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 100 {
		h.submit(1, record.NewTask{Type: fmt.Sprint("type", i), Payload: []byte("p"), Key: fmt.Sprint(i)})
	}
	for r := h.do(command.ClaimNext{WorkerID: "w1", Limit: 1}); len(r.Claims) > 0; r = h.do(command.ClaimNext{WorkerID: "w1", Limit: 1}) {
		h.do(command.Complete{Hold: command.Hold{ID: r.Claims[0].Task.ID, WorkerID: "w1"}})
		h.do(command.Delete{ID: r.Claims[0].Task.ID})
		mustCheck(t, h.m)
	}
	h.stamp.U, h.stamp.T = h.stamp.U+goneMS, h.stamp.T+goneMS
	h.do(command.Tick{})
	h.stamp.T += record.HistoryMinutes * record.MSInMinute
	h.do(command.Tick{})
	total := record.BytesOfHistory(h.m.histories.all[0])
	if n, bytes := h.m.types.Len()+h.m.keys.Len()+h.m.tasks.Len()+len(h.m.histories.all)-1, h.m.Bytes()-h.m.trail.Bytes()-total; n != 0 || bytes != 0 {
		t.Errorf("%d things and %d bytes left", n, bytes)
	}
}

// TestMachine_RebuildRefusesContradictions ensures that no state is built from
// records that no log can lead to.
func TestMachine_RebuildRefusesContradictions(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(m *Machine){
		"two tasks with a key":            func(m *Machine) { m.tasks.Edit(2).Key = "k1" },
		"two tasks with a token":          func(m *Machine) { m.tasks.Edit(4).Token = m.tasks.Get(3).Token },
		"a claim without a token":         func(m *Machine) { m.tasks.Edit(3).Token = 0 },
		"a claim in the log not ended":    func(m *Machine) { m.tasks.Edit(3).Log = []record.Attempt{{Token: 1}} },
		"a token not given out":           func(m *Machine) { m.tasks.Edit(3).Token = 99 },
		"an id not given out":             func(m *Machine) { m.header.NextID = 4 },
		"a task in the wrong place":       func(m *Machine) { m.tasks.Edit(2).ID = 1 },
		"an unknown status":               func(m *Machine) { m.tasks.Edit(2).Status = 9 },
		"no status":                       func(m *Machine) { m.tasks.Edit(2).Status = 0 },
		"two requests with an id":         func(m *Machine) { m.requests.table.Edit(2).ID = "q1" },
		"a request with the wrong number": func(m *Machine) { m.header.NextRequest = 2 },
		"a request that miscounts":        func(m *Machine) { m.requests.table.Edit(1).Live = 2 },
		"a request without claims":        func(m *Machine) { r := m.requests.table.Edit(1); r.Claims, r.Live = nil, 0 },
		"two requests with a claim":       func(m *Machine) { m.requests.table.Edit(2).Claims = m.requests.table.Get(1).Claims },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.submit(1, record.NewTask{Type: "mail", Key: "k1"})
			h.submit(4, record.NewTask{Type: "mail"})
			h.do(command.ClaimTask{ID: 3, WorkerID: "w1", RequestID: "q1"})
			h.do(command.ClaimTask{ID: 4, WorkerID: "w1", RequestID: "q2"})
			if err := h.m.rebuild(); err != nil {
				t.Fatal(err)
			}
			spoil(h.m)
			if err := h.m.rebuild(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v, want ErrCorrupt", err)
			}
		})
	}
}
