package fsm

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// TestApply_KeepsNothingOfItsScratch applies the same log encoded, and decoded to commands
// with their own memory. The memory that the encoded ones were decoded into is overwritten
// after each entry, which must affect neither results nor state.
func TestApply_KeepsNothingOfItsScratch(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		plain, shared := New(), New()
		var wants, gots []Applied
		for _, e := range drawLog(rt, 40) {
			entry := command.AppendEntry(nil, e.Stamp, e.Commands...)
			stamp, commands, err := command.DecodeEntry(entry)
			if err != nil {
				rt.Fatal(err)
			}
			want, err := plain.apply(e.Index, stamp, commands)
			if err != nil {
				rt.Fatal(err)
			}
			wants, gots = append(wants, want), append(gots, mustApply(rt, shared, e.Index, entry))
			overwrite(rt, shared.answers.commands)
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

// overwrite decodes into s what no test expects.
func overwrite(t *rapid.T, s *command.Scratch) {
	task := record.NewTask{Type: "overwritten", Key: "overwritten", Params: []byte("overwritten"), Labels: []record.Label{{Name: "over", Value: "written"}}}
	tasks := slices.Repeat([]record.NewTask{task}, record.TaskRoomMax)
	claim := command.ClaimNext{WorkerID: "overwritten", Types: []string{"overwritten"}, RequestID: "overwritten", Limit: 9}
	commands := []command.Command{
		command.Submit{Tasks: tasks},
		command.Complete{Hold: command.Hold{ID: 9, WorkerID: "overwritten", Token: 9}, Result: []byte("overwritten"), Submit: tasks, Claim: &claim},
	}
	for i := range 200 { // enough to take the place of each list that is remembered
		claim.Types = slices.Repeat([]string{fmt.Sprint("overwritten-", i)}, 1+i%4)
		commands = append(commands, claim)
	}
	_, count, rest, err := command.DecodeHeader(command.AppendEntry(nil, record.Stamp{}, commands...))
	if err == nil {
		err = command.Each(rest, count, s, func(int, command.Command) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
}
