package fsm

import (
	"math"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// sightCommands has commands about schedules, the trail and many tasks, and those with a trace
// context, with every field set.
func sightCommands() []command.Command {
	task := lifeCommands()[0].(command.Submit).Tasks[0]
	task.Attributes = []byte(`{"a":1}`)
	task.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	complete := lifeCommands()[2].(command.Complete)
	complete.Submit = []record.NewTask{task, task}
	return []command.Command{
		command.Submit{Tasks: []record.NewTask{task}},
		complete,
		command.Batch{Atomic: true, RequestID: "request-1", Ops: []command.Command{command.Submit{Tasks: []record.NewTask{task}}, complete}},
		command.Act{
			Action: command.ActionDelete, IDs: []uint64{1, 127, 128, 1<<53 - 1}, AddAttempts: math.MaxInt32,
			Filter: record.Filter{
				Status: record.StatusCancelled, Type: "mail", WorkerID: "worker-1", Key: "order-17", ParentID: 1<<53 - 2,
				Labels:       []record.Label{{Name: "customer", Value: "ann"}, {Name: "region", Value: "eu"}},
				CreatedAfter: 1_780_000_000_000, CreatedBefore: 1_780_000_060_000, ShareKey: "ann",
			},
		},
		command.SetSchedule{Schedule: record.Schedule{
			Name: "nightly", Task: task, Cron: "30 2 * * *", Timezone: "Europe/Vienna", EveryMS: 86_400_000,
			OverlapAllow: true, CatchUpSkip: true, Paused: true, NextRunAt: 1_780_000_060_000,
		}},
		command.DeleteSchedule{Name: "nightly"},
		command.RunSchedules{Items: []command.ScheduleRun{
			{Name: "hourly", Version: 127, Slot: 1_780_000_000_000, Next: 1_780_003_600_000, Skip: true},
			{Name: "nightly", Version: math.MaxUint64, Slot: 1, Next: math.MaxInt64, Skip: true},
		}},
		command.SetTrail{Bytes: 64 << 30, AgeMS: 86_400_000},
	}
}

// drawSight draws a command that appeared at level 3.
func drawSight(t *rapid.T, k command.Kind) command.Command {
	str, i64, yes := rapid.String(), rapid.Int64(), rapid.Bool()
	switch k {
	case command.KindAct:
		return command.Act{
			Action:      rapid.SampledFrom([]command.Action{0, command.ActionRetry, command.ActionCancel, command.ActionDelete}).Draw(t, "action"),
			IDs:         drawSlice(t, "ids", func(t *rapid.T) uint64 { return drawID(t, "id") }),
			Filter:      drawFilter(t),
			AddAttempts: rapid.Int32().Draw(t, "attempts"),
			EndedUntil:  i64.Draw(t, "ended until"),
		}
	case command.KindSetSchedule:
		return command.SetSchedule{Schedule: record.Schedule{
			Name: str.Draw(t, "name"), Task: drawNewTask(t), Cron: str.Draw(t, "cron"), Timezone: str.Draw(t, "zone"),
			EveryMS: i64.Draw(t, "every"), OverlapAllow: yes.Draw(t, "overlap"), CatchUpSkip: yes.Draw(t, "catch up"),
			Paused: yes.Draw(t, "paused"), NextRunAt: i64.Draw(t, "next"), NextWall: i64.Draw(t, "next wall"),
		}, By: str.Draw(t, "by")}
	case command.KindDeleteSchedule:
		return command.DeleteSchedule{Name: str.Draw(t, "name"), By: str.Draw(t, "by")}
	case command.KindRunSchedules:
		return command.RunSchedules{Items: drawSlice(t, "items", func(t *rapid.T) command.ScheduleRun {
			return command.ScheduleRun{
				Name: str.Draw(t, "name"), Version: rapid.Uint64().Draw(t, "version"), Slot: i64.Draw(t, "slot"),
				Next: i64.Draw(t, "next"), Skip: yes.Draw(t, "skip"), Passed: i64.Draw(t, "passed"),
				NextWall: i64.Draw(t, "next wall"), Move: yes.Draw(t, "move"),
			}
		})}
	case command.KindSetTrail:
		return command.SetTrail{Bytes: i64.Draw(t, "bytes"), AgeMS: i64.Draw(t, "age")}
	}
	return drawSteps(t, k)
}

func drawFilter(t *rapid.T) record.Filter {
	str, i64 := rapid.String(), rapid.Int64()
	return record.Filter{
		Status: record.Status(rapid.Uint8Range(0, uint8(record.StatusCancelled)).Draw(t, "status")), Type: str.Draw(t, "type"),
		WorkerID: str.Draw(t, "worker"), Key: str.Draw(t, "key"), ParentID: drawID(t, "parent"),
		Labels: drawSlice(t, "labels", drawLabel), CreatedAfter: i64.Draw(t, "after"), CreatedBefore: i64.Draw(t, "before"),
		ShareKey: str.Draw(t, "share key"),
	}
}
