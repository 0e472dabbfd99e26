package fsm

import (
	"slices"

	"github.com/claimq/claimq/fsm/command"
)

// zonesCommands has the commands with fields of time zones, with every field set.
func zonesCommands() []command.Command {
	isSchedule := func(c command.Command) bool { return command.KindOf(c) == command.KindSetSchedule }
	keys := keyCommands()
	set := keys[slices.IndexFunc(keys, isSchedule)].(command.SetSchedule)
	set.Schedule.NextWall = 1_780_007_260_000
	return []command.Command{set, command.RunSchedules{Items: []command.ScheduleRun{{
		Name: "hourly", Version: 127, Slot: 1, Next: 1_780_003_600_000, Skip: true, Passed: 10_000, NextWall: 1_780_010_800_000, Move: true,
	}}}}
}
