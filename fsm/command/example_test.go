package command_test

import (
	"fmt"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// An entry of the log is a stamp and commands. Decoding gives what was encoded.
func ExampleAppendEntry() {
	entry := command.AppendEntry(nil, record.Stamp{U: 1, T: 1_772_366_400_000},
		command.Submit{Tasks: []record.NewTask{{Type: "mail"}}},
		command.ClaimNext{WorkerID: "worker-1", Limit: 1},
	)
	stamp, commands, err := command.DecodeEntry(entry)
	if err != nil {
		panic(err)
	}
	fmt.Println(stamp.U, len(commands))
	fmt.Println(commands[1].(command.ClaimNext).WorkerID)
	// Output:
	// 1 2
	// worker-1
}
