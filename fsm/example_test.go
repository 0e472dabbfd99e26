package fsm_test

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Each entry of the log is applied in order. Its stamp is the only clock that the machine has, so every node gets the
// same result.
func ExampleMachine_Apply() {
	m := fsm.New()
	apply := func(index uint64, cmd command.Command) fsm.Result {
		stamp := fsm.Stamp{U: int64(index), T: 1_772_366_400_000 + int64(index)}
		applied, err := m.Apply(index, command.AppendEntry(nil, stamp, cmd))
		if err != nil {
			panic(err) // the entry is damaged or was written by a newer version
		}
		return applied.Results[0]
	}
	apply(1, command.SetLevel{Level: fsm.FeatureLevel(), Defaults: fsm.FirstDefaults()})
	submitted := apply(2, command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}})
	claimed := apply(3, command.ClaimNext{WorkerID: "worker-1", Limit: 1})
	fmt.Println(claimed.Claims[0].Task.ID == submitted.Submitted[0].Task.ID, m.ClaimCount())

	// A refusal is a result as well. It changes nothing, on all nodes alike.
	fmt.Println(apply(4, command.ClaimTask{ID: claimed.Claims[0].Task.ID, WorkerID: "worker-2"}).Code)
	// Output:
	// true 1
	// task_already_claimed
}
