package fsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// randomPlainly returns the ids that the claim takes when its command is the
// place-th of the entry at the index: k-th of what can be claimed by type,
// attempts left and id, k by the hash. There must be no limits.
func (m *Machine) randomPlainly(c command.ClaimNext, index uint64, place int) []uint64 {
	ready, _ := m.claimablePlainly()
	var all []*record.Task
	if c.Types == nil { // by attempts left, type and id
		for _, name := range slices.Sorted(maps.Keys(ready)) {
			all = append(all, ready[name]...)
		}
		leftOf := func(t *record.Task) int32 {
			if t.MaxAttempts == 0 {
				return 1001
			}
			return min(1001, t.MaxAttempts-t.Attempts)
		}
		slices.SortStableFunc(all, func(a, b *record.Task) int { return int(leftOf(a) - leftOf(b)) })
		all = slices.DeleteFunc(all, func(t *record.Task) bool { return leftOf(t) <= c.MoreAttempts })
	}
	for _, name := range c.Types {
		byLeft := map[int32][]*record.Task{}
		for _, t := range ready[name] {
			left := int32(1001)
			if t.MaxAttempts > 0 {
				left = min(left, t.MaxAttempts-t.Attempts)
			}
			if left > c.MoreAttempts {
				byLeft[left] = append(byLeft[left], t)
			}
		}
		for _, left := range slices.Sorted(maps.Keys(byLeft)) {
			all = append(all, byLeft[left]...)
		}
	}
	var ids []uint64
	for pick := 0; pick < int(c.Limit) && len(all) > 0; pick++ {
		// The hash times the number of tasks, divided by 2^64.
		hash, n := uint64(record.HashStart.Number(index).Number(uint64(place)).Number(uint64(pick)).Mixed()), uint64(len(all))
		k := (hash>>32*n + (hash&(1<<32-1))*n>>32) >> 32
		ids = append(ids, all[k].ID)
		all = slices.Delete(all, int(k), int(k)+1)
	}
	return ids
}

// TestRandom_TakesTheKth ensures that random claims follow the rule, which depends only on
// the tasks, with groups, priorities and attempts.
func TestRandom_TakesTheKth(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	for i := range 200 {
		task := record.NewTask{Type: []string{"mail", "scan", "video"}[i%3], Payload: []byte("p"), Priority: int32(i % 5 * (i % 2)), MaxAttempts: int32(i % 4)}
		if i%7 == 0 {
			task.Group = "g"
		}
		h.submit(1, task)
	}
	for round := range 60 {
		claim := command.ClaimNext{
			WorkerID: "w1", SortBy: command.SortRandom, Limit: int32(1 + round%9), MoreAttempts: int32(round % 3),
			Types: [][]string{{"mail"}, {"mail", "scan"}, {"mail", "none", "scan", "video"}, nil}[round%4],
		}
		index := h.m.Index() + 1
		want := h.m.randomPlainly(claim, index, 2)
		a := mustApplyTo(t, h.m, testEntry{Index: index, Stamp: h.stamp, Commands: []command.Command{command.Tick{}, command.Checkpoint{}, claim}})
		var got []uint64
		for _, c := range a.Results[2].Claims {
			got = append(got, c.Task.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round %d, %+v (-want +got):\n%s", round, claim, diff)
		}
		mustCheck(t, h.m)
		for i, id := range got {
			if hold := (command.Hold{ID: id, WorkerID: "w1"}); i%3 > 0 {
				h.do(command.Fail{Hold: hold})
			} else if i%2 == 0 {
				h.do(command.Release{Hold: hold})
			}
		}
		mustCheck(t, h.m)
	}
}

// TestRandom_TakesAll ensures that no task is left out however the claim is cut.
func TestRandom_TakesAll(t *testing.T) {
	t.Parallel()
	for _, types := range [][]string{{"mail", "scan"}, nil} {
		h := newLifeHarness(t)
		h.submit(30, record.NewTask{Type: "mail", Payload: []byte("p")})
		h.submit(30, record.NewTask{Type: "scan", Payload: []byte("p"), Priority: 1})
		h.submit(30, record.NewTask{Type: "scan", Payload: []byte("p"), Priority: 2})
		claim := command.ClaimNext{WorkerID: "w1", Types: types, SortBy: command.SortRandom, Limit: 41}
		for _, want := range []int{41, 41, 8, 0} {
			if got := len(h.do(claim).Claims); got != want {
				t.Errorf("%d claims of %v, want %d", got, types, want)
			}
			mustCheck(t, h.m)
		}
	}
}

// TestMoreAttempts takes only tasks with more attempts left, in the order
// asked for, merged over types and attempts left.
func TestMoreAttempts(t *testing.T) {
	t.Parallel()
	h := newLifeHarness(t)
	for _, n := range []record.NewTask{
		{Type: "mail", MaxAttempts: 1, Priority: 9}, // 1
		{Type: "mail", MaxAttempts: 2},              // 2
		{Type: "scan", MaxAttempts: 3},              // 3
		{Type: "mail"},                              // 4: no limit
		{Type: "scan", MaxAttempts: 5000},           // 5
		{Type: "mail", MaxAttempts: 3, Priority: 1}, // 6
		{Type: "scan", MaxAttempts: 1001},           // 7
		{Type: "scan", MaxAttempts: 1000},           // 8
	} {
		n.Payload = []byte("p")
		h.submit(1, n)
	}
	for _, c := range []struct {
		claim command.ClaimNext
		want  []uint64
	}{
		{command.ClaimNext{}, []uint64{1, 6, 2, 3, 4, 5, 7, 8}},
		{command.ClaimNext{MoreAttempts: 1}, []uint64{6, 2, 3, 4, 5, 7, 8}},
		{command.ClaimNext{MoreAttempts: 2}, []uint64{6, 3, 4, 5, 7, 8}},
		{command.ClaimNext{MoreAttempts: 2, Ascending: true}, []uint64{3, 4, 5, 7, 8, 6}},
		{command.ClaimNext{MoreAttempts: 2, SortBy: command.SortCreatedAt}, []uint64{8, 7, 6, 5, 4, 3}},
		{command.ClaimNext{MoreAttempts: 3, SortBy: command.SortCreatedAt, Ascending: true}, []uint64{4, 5, 7, 8}},
		{command.ClaimNext{MoreAttempts: 999}, []uint64{4, 5, 7, 8}},
		{command.ClaimNext{MoreAttempts: 1000}, []uint64{4, 5, 7}},
	} {
		for _, types := range [][]string{{"mail", "scan"}, nil} {
			c.claim.WorkerID, c.claim.Types, c.claim.Limit = "w1", types, 100
			var got []uint64
			for _, claim := range h.do(c.claim).Claims {
				got = append(got, claim.Task.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", c.claim, diff)
			}
			mustCheck(t, h.m)
			for _, id := range got {
				h.do(command.Release{Hold: command.Hold{ID: id, WorkerID: "w1"}})
			}
		}
	}
	// An attempt that is spent counts.
	h.do(command.ClaimTask{ID: 3, WorkerID: "w1"})
	h.wantCode(command.Fail{Hold: command.Hold{ID: 3, WorkerID: "w1"}}, "")
	c := command.ClaimNext{WorkerID: "w1", Types: []string{"scan"}, MoreAttempts: 2, Limit: 1, SortBy: command.SortCreatedAt, Ascending: true}
	if got := h.do(c).Claims[0].Task.ID; got != 5 {
		t.Errorf("claimed task %d, want 5: task 3 has two attempts left", got)
	}
}

// TestAskedOf_StaysWhatItIs ensures the same of the hash with the worker: FNV-1a that starts
// with that of the choice, and is never 0.
func TestAskedOf_StaysWhatItIs(t *testing.T) {
	t.Parallel()
	h := fnv.New64a() // "w1" behind the usual start
	h.Write([]byte("w1"))
	if got := askedOf("w1", 14695981039346656037); got != h.Sum64() {
		t.Errorf("%#x, want %#x", got, h.Sum64())
	}
	if got := askedOf("", 0); got != 1 {
		t.Errorf("nothing is %#x, want 1", got)
	}
}

// TestChoiceOfNext_StaysWhatItIs ensures that the hash in saved requests does not change,
// that it comes from SHA-256, and that it covers exactly the fields that decide the choice.
func TestChoiceOfNext_StaysWhatItIs(t *testing.T) {
	t.Parallel()
	m := New()
	c := command.ClaimNext{WorkerID: "w1", Types: []string{"mail", "scan"}, SortBy: command.SortCreatedAt, Ascending: true, Limit: 7}
	sum := sha256.Sum256([]byte("\x02\x12\x04mail\x12\x04scan\x18\x01\x20\x01\x28\x07"))
	if got, want := choiceOfNext(m, &c), binary.BigEndian.Uint64(sum[:8]); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
	other := c
	other.WorkerID, other.RequestID, other.RequestPlace, other.LeaseMS = "w2", "r", 7, 1000
	if choiceOfNext(m, &c) != choiceOfNext(m, &other) {
		t.Error("who claims for how long is part of what is chosen")
	}
	fields := reflect.TypeFor[command.ClaimNext]()
	for i := range fields.NumField() {
		other := c
		field := reflect.ValueOf(&other).Elem().Field(i)
		switch v := field.Addr().Interface().(type) {
		case *[]string:
			*v = []string{"mail", "scans"}
		case *bool:
			*v = !*v
		case *string:
			*v += "2"
		default:
			field.Set(reflect.ValueOf(2).Convert(field.Type()))
		}
		same := bytes.Equal(c.AppendChoice(nil), other.AppendChoice(nil))
		if got := c.SameChoice(&other); got != same {
			t.Errorf("with another %s the choice is the same: %v, want %v", fields.Field(i).Name, got, same)
		}
		if got := choiceOfNext(m, &other) == choiceOfNext(m, &c); got != same {
			t.Errorf("with another %s the hash is the same: %v, want %v", fields.Field(i).Name, got, same)
		}
	}
	seen := map[uint64]command.Command{}
	add := func(hash uint64, c command.Command) {
		if other, twice := seen[hash]; twice {
			t.Errorf("%+v and %+v are the same", c, other)
		}
		seen[hash] = c
	}
	for _, types := range [][]string{nil, {"mail"}, {"mail", "scan"}, {"mails", "can"}} {
		for sortBy := range command.SortRandom + 1 {
			for _, more := range []int32{0, 1, 256, 1000} {
				for _, ascending := range []bool{false, true} {
					c := command.ClaimNext{Types: types, SortBy: sortBy, MoreAttempts: more, Ascending: ascending}
					add(choiceOfNext(m, &c), c)
				}
			}
		}
	}
	for id := range uint64(10) {
		add(choiceOfTask(m, &command.ClaimTask{ID: id}), command.ClaimTask{ID: id})
	}
}
