package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// newRestful returns the empty state, in which every waiting task rests at once.
func newRestful() *Machine {
	m := New()
	m.tasks = record.NewTable[record.Task](record.EncodedTasks{Names: &m.types}, 0)
	m.requests.table = record.NewTable[record.Request](record.RestingRequests{}, 0)
	m.gone.table = record.NewTable[record.Gone](record.RestingGone{}, 0)
	return m
}

// Tasks that have waited long are packed and still read the same; when the queue has been
// worked off, nothing of them is left.
func TestWaitingTasks_rest(t *testing.T) {
	t.Parallel()
	h := &harness{t: t, m: New(), stamp: record.Stamp{T: 1_700_000_000_000}}
	h.do(command.SetLevel{Level: record.FeatureLevel})
	const tasks = (record.BusyPages + 24) * record.PageSize
	for i := range tasks {
		h.do(command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: []byte(fmt.Sprintf(`{"n":%d}`, i)), Key: fmt.Sprint("key-", i), Labels: []record.Label{{Name: "a", Value: "b"}}}}})
	}
	checkResting(t, h.m, tasks)
	got := h.m.Get(5)
	want := &record.Task{
		ID: 5, Type: "mail", Params: []byte(`{"n":4}`), Key: "key-4", Status: record.StatusPending, Options: &record.Options{Labels: []record.Label{{Name: "a", Value: "b"}}},
		CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a task that rests (-want +got):\n%s", diff)
	}
	for i := range tasks {
		c := h.do(command.ClaimNext{WorkerID: "w", Types: []string{"mail"}, Limit: 1}).Claims[0]
		if want := fmt.Sprintf(`{"n":%d}`, i); string(c.Task.Params) != want {
			t.Fatalf("claim %d is of %s", i, c.Task.Params)
		}
	}
	h.m.tasks.Ascend(0, func(task record.Kept[record.Task]) bool {
		if task.Record == nil {
			t.Errorf("task %d rests, all are claimed", task.ID)
		}
		return true
	})
	mustCheck(t, h.m)
}

// checkResting ensures that all of the waiting tasks are packed, except for the last pages.
func checkResting(t *testing.T, m *Machine, tasks int) {
	t.Helper()
	busy := record.PageOf(uint64(tasks)) + 1 - record.BusyPages
	n := 0
	m.tasks.Ascend(0, func(task record.Kept[record.Task]) bool {
		n++
		if rests, want := task.Record == nil, record.PageOf(task.ID) < busy; rests != want {
			t.Errorf("task %d of %d rests: %v, want %v", task.ID, tasks, rests, want)
		}
		return true
	})
	if n != tasks {
		t.Errorf("%d tasks, want %d", n, tasks)
	}
}

// A task that waited has its own memory for its params once it is claimed, whatever their
// size.
func TestWaitingTasks_params(t *testing.T) {
	t.Parallel()
	w := record.EncodedTasks{Names: &New().types}
	for n := range 600 {
		want := &record.Task{ID: 7, Type: "mail", Params: bytes.Repeat([]byte{'x'}, n), Payload: []byte("p")}
		if n == 0 {
			want.Params = nil
		}
		packed := w.Pack(nil, want.ID, want)
		got := w.Unpack(packed, false)
		for i := range packed {
			packed[i] = '-'
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d bytes of params (-want +got):\n%s", n, diff)
		}
		if cap(got.Params) > n+n/4+8 {
			t.Errorf("%d bytes of params have room for %d", n, cap(got.Params))
		}
	}
}
