package fsm

import (
	"crypto/sha256"
	"math"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// actsCommands has a command of each type that knows a field of level 5, with
// every field set. Golden files hold them, so they do not change.
func actsCommands() []Command {
	setType := lifeCommands()[8].(SetType)
	setType.By = "deploy"
	setSchedule := sightCommands()[4].(SetSchedule)
	setSchedule.By = "deploy"
	setNode := firstCommands()[12].(SetNode)
	setNode.Node.Nonvoter = true
	return []Command{
		setType,
		setSchedule,
		DeleteSchedule{Name: "nightly", By: "deploy"},
		setNode,
		Tell{Kind: event.LeadershipTransferred, By: "deploy", What: "to n2"},
		RestoreBegin{Bytes: math.MaxUint64},
		RestoreChunk{Begin: 127, Offset: 1 << 20, Data: []byte("CLAIMQSN\x01")},
		RestoreEnd{Begin: math.MaxUint64},
		SetJoinToken{Hash: tokenHash("one"), LifeMS: 3_600_000, Uses: 2, By: "deploy"},
		DeleteJoinToken{ID: "7692c3ad3540", By: "deploy"},
		RunSchedules{Items: []ScheduleRun{{Name: "hourly", Version: 127, Slot: 1, Next: 1_780_003_600_000, Skip: true, Passed: 10_000}}},
		UseJoinToken{Hash: tokenHash("one"), UUID: fullNode.UUID, NodeID: "n1"},
		SetPageSecret{Secret: tokenHash("page")},
		groupAct(),
		fullDefaults(),
	}
}

// fullDefaults has every field set.
func fullDefaults() SetDefaults {
	return SetDefaults{Set: DefaultFields, Defaults: record.Defaults{
		LeaseMS: 60_000, LimitSet: true, MaxAttempts: 10, Backoff: &record.Backoff{InitialMS: 1000, MaxMS: 3_600_000, Factor: 2_000_000, Jitter: 200_000},
		RetentionMS: record.KeepForever,
	}, By: "deploy"}
}

// drawSetDefaults draws a change of the server's defaults.
func drawSetDefaults(t *rapid.T) SetDefaults {
	i64 := rapid.Int64()
	return SetDefaults{
		Set: record.TypeFields(rapid.Uint32().Draw(t, "set")) & DefaultFields,
		Defaults: record.Defaults{
			LeaseMS: i64.Draw(t, "lease"), LimitSet: rapid.Bool().Draw(t, "limit set"), MaxAttempts: rapid.Int32().Draw(t, "attempts"),
			Backoff: drawPointer(t, "backoff", drawBackoff), RetentionMS: i64.Draw(t, "retention"),
		},
		By: rapid.String().Draw(t, "by"),
	}
}

// groupAct is an action on a group of failed tasks.
func groupAct() Act {
	act := sightCommands()[3].(Act)
	act.Filter.ErrorGroup = math.MaxUint64
	return act
}

// tokenHash returns what the state keeps of a join token.
func tokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// drawJoinToken draws a command about a join token.
func drawJoinToken(t *rapid.T, k kind) Command {
	str := rapid.String()
	switch k {
	case kindSetJoinToken:
		return SetJoinToken{Hash: drawBytes(t, "hash"), LifeMS: rapid.Int64().Draw(t, "life"), Uses: rapid.Int32().Draw(t, "uses"), By: str.Draw(t, "by")}
	case kindDeleteJoinToken:
		return DeleteJoinToken{ID: str.Draw(t, "id"), By: str.Draw(t, "by")}
	}
	return UseJoinToken{Hash: drawBytes(t, "hash"), UUID: str.Draw(t, "uuid"), NodeID: str.Draw(t, "node")}
}

// drawRestore draws a command of a restore.
func drawRestore(t *rapid.T, k kind) Command {
	u64 := rapid.Uint64()
	switch k {
	case kindRestoreBegin:
		return RestoreBegin{Bytes: u64.Draw(t, "bytes")}
	case kindRestoreChunk:
		return RestoreChunk{Begin: u64.Draw(t, "begin"), Offset: u64.Draw(t, "offset"), Data: drawBytes(t, "data")}
	}
	return RestoreEnd{Begin: u64.Draw(t, "begin")}
}

// drawTell draws a command that appeared at level 5.
func drawTell(t *rapid.T) Tell {
	str := rapid.String()
	return Tell{
		Kind: event.Kind(rapid.Uint8Range(0, uint8(event.Last)).Draw(t, "kind")), By: str.Draw(t, "by"), What: str.Draw(t, "what"),
	}
}
