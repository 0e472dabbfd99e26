package fsm

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/wire"
)

// TestApply_KeepsNothingOfItsScratch applies the same log encoded, and decoded
// to commands that are nobody else's. The memory that the encoded ones were
// decoded into is overwritten after each entry: neither results nor state notice.
func TestApply_KeepsNothingOfItsScratch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plain, shared := New(), New()
		var wants, gots []Applied
		for _, e := range drawLog(rt, 40) {
			entry := AppendEntry(nil, e.Stamp, e.Commands...)
			stamp, commands, err := DecodeEntry(entry)
			if err != nil {
				rt.Fatal(err)
			}
			want, err := plain.apply(e.Index, stamp, commands)
			if err != nil {
				rt.Fatal(err)
			}
			wants, gots = append(wants, want), append(gots, mustApply(rt, shared, e.Index, entry))
			overwrite(shared.answers.commands)
		}
		if diff := diffBy(wants, gots, plansToo); diff != "" {
			rt.Fatalf("results (-commands +entries):\n%s", diff)
		}
		if plain.Snapshot().Hash() != shared.Snapshot().Hash() {
			rt.Fatal("the states differ")
		}
		if err := shared.check(); err != nil {
			rt.Fatal(err)
		}
	})
}

// overwrite puts into s what no test expects.
func overwrite(s *scratch) {
	claim := ClaimNext{WorkerID: "overwritten", Types: []string{"overwritten"}, RequestID: "overwritten", Limit: 9}
	task := record.NewTask{Type: "overwritten", Key: "overwritten", Params: []byte("overwritten"), Labels: []record.Label{{Name: "over", Value: "written"}}}
	for i := range s.room.Tasks {
		s.room.Tasks[i] = task
	}
	for i := range s.lists {
		for j := range s.lists[i].names {
			s.lists[i].names[j] = "overwritten"
		}
		s.lists[i].encoded = nil
	}
	s.submit = Submit{Tasks: []record.NewTask{task}}
	s.claim, s.then = claim, claim
	s.complete = Complete{Hold: Hold{ID: 9, WorkerID: "overwritten", Token: 9}, Result: []byte("overwritten"), Submit: []record.NewTask{task}, Claim: &claim}
}

// A command that was decoded into a scratch is the one that was encoded, whatever
// was in the scratch before, and afterwards the scratch holds on to nothing.
func TestScratch_DecodesWhatWasEncoded(t *testing.T) {
	t.Parallel()
	var s scratch
	tasks := []record.NewTask{{Type: "a", Params: []byte("1")}, {Type: "b", Payload: []byte("2"), Key: "k"}}
	for i, want := range []Command{
		Submit{Tasks: slices.Repeat(tasks, 2)},
		Submit{Tasks: tasks[:1]},
		Submit{Tasks: slices.Repeat(tasks, record.TaskRoomMax)},
		Submit{},
		ClaimNext{WorkerID: "w", Types: []string{"a", "b", "c"}, Limit: 1},
		ClaimNext{WorkerID: "w", Types: []string{"b"}, RequestID: "r"},
		ClaimNext{Types: slices.Repeat([]string{"a"}, record.TaskRoomMax+1)},
		ClaimNext{},
		Complete{Hold: Hold{ID: 1, WorkerID: "w", Token: 2}, Submit: tasks, Claim: &ClaimNext{WorkerID: "v", Types: []string{"z"}}},
		Complete{Hold: Hold{ID: 1}},
	} {
		c, size, err := decodeCommand(AppendCommand(nil, want), &s)
		if err != nil {
			t.Fatal(err)
		}
		var got Command
		switch c := c.(type) {
		case *Submit:
			got = *c
		case *ClaimNext:
			got = *c
		case *Complete:
			got = *c
		}
		if diff := diffBy(want, got); diff != "" || size != len(AppendCommand(nil, want)) {
			t.Errorf("command %d (-encoded +decoded):\n%s", i, diff)
		}
		s.reset()
		if diff := diffBy(scratch{}, scratch{submit: s.submit, claim: s.claim, complete: s.complete, then: s.then}); diff != "" {
			t.Errorf("after reset:\n%s", diff)
		}
		if i := slices.IndexFunc(s.room.Tasks, func(n record.NewTask) bool { return n.Type != "" || n.Params != nil }); i >= 0 {
			t.Errorf("task %d of the scratch is kept", i)
		}
	}
	if len(s.room.Tasks) > record.TaskRoomMax {
		t.Errorf("room for %d tasks is kept", len(s.room.Tasks))
	}
}

// Names are what they were made of, also when many share a place.
func TestNames_Of(t *testing.T) { // not parallel: it counts allocations
	var n wire.Names
	for i := range 4 * len(n) {
		for _, name := range []string{fmt.Sprint("worker-", i), "", "x", "mail"} {
			if got := n.Of([]byte(name)); got != name {
				t.Fatalf("%q became %q", name, got)
			}
		}
	}
	mail := []byte("mail")
	if got := testing.AllocsPerRun(10, func() { n.Of(mail) }); got != 0 {
		t.Errorf("a known name allocates %v times", got)
	}
}
