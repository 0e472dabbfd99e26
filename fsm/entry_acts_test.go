package fsm

import (
	"crypto/sha256"
	"math"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// actsCommands has commands of operators, with every field set.
func actsCommands() []command.Command {
	setType := lifeCommands()[8].(command.SetType)
	setType.By = "deploy"
	setSchedule := sightCommands()[4].(command.SetSchedule)
	setSchedule.By = "deploy"
	setNode := firstCommands()[12].(command.SetNode)
	setNode.Node.Nonvoter = true
	return []command.Command{
		setType,
		setSchedule,
		command.DeleteSchedule{Name: "nightly", By: "deploy"},
		setNode,
		command.Tell{Kind: event.LeadershipTransferred, By: "deploy", What: "to n2"},
		command.RestoreBegin{Bytes: math.MaxUint64},
		command.RestoreChunk{Begin: 127, Offset: 1 << 20, Data: []byte("CLAIMQSN\x01")},
		command.RestoreEnd{Begin: math.MaxUint64},
		command.SetJoinToken{Hash: tokenHash("one"), LifeMS: 3_600_000, Uses: 2, By: "deploy"},
		command.DeleteJoinToken{ID: "7692c3ad3540", By: "deploy"},
		command.RunSchedules{Items: []command.ScheduleRun{{Name: "hourly", Version: 127, Slot: 1, Next: 1_780_003_600_000, Skip: true, Passed: 10_000}}},
		command.UseJoinToken{Hash: tokenHash("one"), UUID: fullNode.UUID, NodeID: "n1"},
		command.SetPageSecret{Secret: tokenHash("page")},
		boundedAct(),
		fullDefaults(),
		command.Signal{ID: 129, Body: []byte(`{"approved":true}`), By: "deploy"},
		command.MoveTasks{Type: "dead", Cancel: math.MaxUint64, To: "mail", Rate: 500, By: "deploy"},
		command.SetShare{Type: "mail", ShareKey: "ann", Settings: fullShare.Settings, By: "deploy"},
	}
}

// fullDefaults has every field set.
func fullDefaults() command.SetDefaults {
	return command.SetDefaults{Set: command.DefaultFields, Defaults: record.Defaults{
		LeaseMS: 60_000, LimitSet: true, MaxAttempts: 10, Backoff: &record.Backoff{InitialMS: 1000, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000},
		RetentionMS: record.KeepForever,
	}, By: "deploy"}
}

// drawSetDefaults draws a change of the server's defaults.
func drawSetDefaults(t *rapid.T) command.SetDefaults {
	i64 := rapid.Int64()
	return command.SetDefaults{
		Set: record.TypeFields(rapid.Uint32().Draw(t, "set")) & command.DefaultFields,
		Defaults: record.Defaults{
			LeaseMS: i64.Draw(t, "lease"), LimitSet: rapid.Bool().Draw(t, "limit set"), MaxAttempts: rapid.Int32().Draw(t, "attempts"),
			Backoff: drawPointer(t, "backoff", drawBackoff), RetentionMS: i64.Draw(t, "retention"),
		},
		By: rapid.String().Draw(t, "by"),
	}
}

// boundedAct is an action with every field set.
func boundedAct() command.Act {
	act := sightCommands()[3].(command.Act)
	act.EndedUntil = 1_780_000_060_000
	return act
}

// tokenHash returns what the state keeps of a join token.
func tokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// drawJoinToken draws a command about a join token.
func drawJoinToken(t *rapid.T, k command.Kind) command.Command {
	str := rapid.String()
	switch k {
	case command.KindSetJoinToken:
		return command.SetJoinToken{Hash: drawBytes(t, "hash"), LifeMS: rapid.Int64().Draw(t, "life"), Uses: rapid.Int32().Draw(t, "uses"), By: str.Draw(t, "by")}
	case command.KindDeleteJoinToken:
		return command.DeleteJoinToken{ID: str.Draw(t, "id"), By: str.Draw(t, "by")}
	}
	return command.UseJoinToken{Hash: drawBytes(t, "hash"), UUID: str.Draw(t, "uuid"), NodeID: str.Draw(t, "node")}
}

// drawRestore draws a command of a restore.
func drawRestore(t *rapid.T, k command.Kind) command.Command {
	u64 := rapid.Uint64()
	switch k {
	case command.KindRestoreBegin:
		return command.RestoreBegin{Bytes: u64.Draw(t, "bytes")}
	case command.KindRestoreChunk:
		return command.RestoreChunk{Begin: u64.Draw(t, "begin"), Offset: u64.Draw(t, "offset"), Data: drawBytes(t, "data")}
	}
	return command.RestoreEnd{Begin: u64.Draw(t, "begin")}
}

// drawTell draws a command that appeared at level 5.
func drawTell(t *rapid.T) command.Tell {
	str := rapid.String()
	return command.Tell{
		Kind: event.Kind(rapid.Uint8Range(0, uint8(event.Last)).Draw(t, "kind")), By: str.Draw(t, "by"), What: str.Draw(t, "what"),
	}
}
