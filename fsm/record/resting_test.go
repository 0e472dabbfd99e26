package record

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The data that an ended task keeps for a repeat of its Complete does not count for restingMax. It
// is bounded by the follow-ups and claims of one Complete.
func TestRestingTasks_thenIsBesideTheBound(t *testing.T) {
	t.Parallel()
	const (
		most    = 1000 // follow-ups of a Complete, and claims of its next one
		thenMax = 33 << 10
	)
	task := &Task{ID: math.MaxUint64, Status: StatusCompleted, Type: strings.Repeat("t", restingMax), WorkerID: "w", Then: &Then{}}
	alone := len(AppendTask(nil, task))
	for range most {
		task.Then.Submitted = append(task.Then.Submitted, FollowUp{ID: math.MaxUint64, Created: true})
		task.Then.Claims = append(task.Then.Claims, ClaimRef{TaskID: math.MaxUint64, Token: math.MaxUint64})
	}
	if !IsResting(task) {
		t.Error("a task that has much for a repeat does not rest")
	}
	if then := len(AppendTask(nil, task)) - alone; then > thenMax {
		t.Errorf("that takes %d bytes, more than %d", then, thenMax)
	}
	task.Type += "t"
	if IsResting(task) {
		t.Errorf("a task of more than %d bytes rests", restingMax)
	}
}

// typesAsRead shares no names of types.
type typesAsRead struct{}

func (typesAsRead) NameOfType(name []byte) string { return string(name) }

func (typesAsRead) ShareKeyOf(_ string, key []byte) string { return string(key) }

// A task that is unpacked into memory has nothing of the one before.
func TestEncodedTasks_UnpackInto(t *testing.T) {
	t.Parallel()
	w := EncodedTasks{typesAsRead{}}
	attempts := []Attempt{
		{WorkerID: "w1", Token: 1, ClaimedAt: 10, EndedAt: 20, Outcome: OutcomeFailed, Error: "no route"},
		{WorkerID: "w2", Token: 3, ClaimedAt: 30, EndedAt: 40, Outcome: OutcomeCompleted},
	}
	full := &Task{
		ID: 1, Type: "mail", Params: []byte("1"), Status: StatusCompleted, WorkerID: "w2", Token: 3, Attempts: 2, ClaimedAt: 30, CompletedAt: 40,
		Result: []byte("2"), Error: "no route", Key: "k", Log: attempts, Then: &Then{Claims: []ClaimRef{{1, 2}}}, Options: &Options{Group: "g"},
	}
	once := &Task{ID: 2, Type: "scan", Payload: []byte("p"), Status: StatusFailed, Log: attempts[:1]}
	fresh := &Task{ID: 3, Type: "scan", Status: StatusPending}
	var memory TaskMemory
	for _, task := range []*Task{full, fresh, once, full, once, fresh} {
		packed := w.Pack(nil, task.ID, task)
		want := w.Unpack(packed, true)
		if diff := cmp.Diff(want, w.UnpackInto(&memory, packed), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("task %d (-unpacked +into memory):\n%s", task.ID, diff)
		}
	}
}
