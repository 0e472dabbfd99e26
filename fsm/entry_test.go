package fsm

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/proof"
)

// fullStamp is the stamp of golden entries.
var fullStamp = record.Stamp{U: 86_400_001, T: 1_780_000_000_123}

// firstCommands has commands about tasks and nodes, in the order of the types.
func firstCommands() []command.Command {
	hold := command.Hold{ID: 1<<53 - 1, WorkerID: "worker-1", Token: 1<<53 - 2}
	return []command.Command{
		command.Submit{Tasks: []record.NewTask{{
			Type: "mail", Params: []byte(`{"to":"ann"}`), Payload: []byte{0, 1, 254, 255}, Priority: -7,
			MaxAttempts: record.DefaultAttempts, Key: "order-17", LeaseMS: 86_400_000,
		}}},
		command.ClaimNext{
			WorkerID: "worker-1", Types: []string{"mail", "sms"}, SortBy: command.SortCreatedAt, Ascending: true,
			Limit: 1000, LeaseMS: 100, RequestID: "request-1",
		},
		command.ClaimTask{ID: 300, WorkerID: "worker-1", LeaseMS: 30_000, RequestID: "request-2"},
		command.Complete{Hold: hold, Result: []byte(`"done"`), ResultPayload: []byte{0xff}},
		command.Fail{Hold: hold, Error: "mailbox full: žluťoučký"},
		command.Extend{Hold: hold, LeaseMS: 60_000},
		command.Release{Hold: hold},
		command.Retry{ID: 4, Token: 5, AddAttempts: math.MaxInt32},
		command.Delete{ID: 127},
		command.Expire{Items: []command.Lease{{TaskID: 1, Token: 2, Seq: 3}, {TaskID: 128, Token: 129, Seq: math.MaxUint32}}},
		command.Tick{},
		command.Checkpoint{},
		command.SetNode{Node: record.NodeRecord{
			UUID: "0196e0a2-7c1e-7d5c-9b1e-0d3b5a7f1c11", NodeID: "n1", PeerAddr: "127.0.0.1:7401",
			HTTPAddr: "http://127.0.0.1:7400", Version: "1.0.0", Level: 1,
		}},
		command.RemoveNode{UUID: "0196e0a2-7c1e-7d5c-9b1e-0d3b5a7f1c11"},
		command.SetLevel{Level: 1},
	}
}

// lifeCommands has commands with the fields of a task's whole life, all set.
func lifeCommands() []command.Command {
	hold := command.Hold{ID: 1<<53 - 1, WorkerID: "worker-1", Token: 1<<53 - 2}
	backoff := &record.Backoff{InitialMS: 1000, MaxMS: 86_400_000, Factor: 1_500_000, Jitter: 200_000}
	task := record.NewTask{
		Type: "mail", Params: []byte(`{"to":"ann"}`), Payload: []byte{0, 1, 254, 255}, Priority: math.MinInt32,
		MaxAttempts: math.MaxInt32, Key: "order-17", LeaseMS: 86_400_000,
		RunAt: 1_780_000_060_000, DelayMS: 60_000, AtOnce: true, ExpiresAt: 1_780_000_120_000, ExpiresAgain: true, Backoff: backoff, RetentionMS: record.KeepNone,
		Labels: []record.Label{{Name: "customer", Value: "ann"}, {Name: "region", Value: "eu"}}, Group: "ann", UniqueActive: true, UniqueMS: 300_000, SignalMS: 86_400_000, Replace: true, ShareKey: "ann",
	}
	claim := command.ClaimNext{
		WorkerID: "worker-1", Types: []string{"mail", "sms"}, SortBy: command.SortRandom, Ascending: true,
		Limit: 1000, LeaseMS: 100, RequestID: "request-1", RequestPlace: 999, MoreAttempts: command.AttemptsLeftMax, Runs: true,
	}
	complete := command.Complete{Hold: hold, Result: []byte(`"done"`), ResultPayload: []byte{0xff}, Submit: []record.NewTask{task, task}, Claim: &claim, Late: true}
	fail := command.Fail{Hold: hold, Error: "mailbox full", RetryIn: true, RetryInMS: 300_000, Permanent: true}
	extend := command.Extend{Hold: hold, LeaseMS: 60_000, Progress: []byte(`{"done":7}`), Exact: true}
	release := command.Release{Hold: hold, DelayMS: 5000}
	return []command.Command{
		command.Submit{Tasks: []record.NewTask{task}},
		claim,
		complete,
		fail,
		extend,
		release,
		command.Cancel{ID: 128},
		command.Patch{
			ID: 1 << 52, SetPriority: true, Priority: -1, SetRunAt: true, RunAt: 1_780_000_060_000,
			SetLabels: true, Labels: []record.Label{{Name: "region", Value: "us"}}, SetShareKey: true, ShareKey: "ann",
		},
		command.SetType{Type: "mail", Set: record.TypeFieldsAll, Settings: record.TypeSettings{
			Paused: true, MaxClaimed: 10, RateLimit: 2_500_000, LeaseMS: 100, LimitSet: true, MaxAttempts: math.MaxInt32,
			Backoff: backoff, RetentionMS: record.KeepForever, Queue: "1 2", DelayMS: 60_000,
			DeadLetter: "dead", DeadLetterAfter: math.MaxInt32, MaxClaimedPerKey: math.MaxInt32, Fair: true, RateLimitPerKey: 1_500_000,
		}, IfQueue: true, Queue: "1 1"},
		command.Evict{Bytes: 1 << 30},
		command.Forget{Bytes: 1 << 30},
		command.Batch{Atomic: true, RequestID: "request-1", Ops: []command.Command{
			command.Submit{Tasks: []record.NewTask{task}},
			claim, complete, fail, extend, release,
			command.Retry{ID: 4, Token: 5, AddAttempts: 1},
			command.Cancel{ID: 128},
			command.Delete{ID: 127},
		}},
	}
}

// fullRelease has every field of a Release.
func fullRelease() command.Command {
	return command.Release{Hold: command.Hold{ID: 3, WorkerID: "worker-1", Token: 7}, DelayMS: 5000, Answer: command.FirstAnswer}
}

// fullCommands has no field at its zero value; there is one command of each
// type.
func fullCommands() []command.Command {
	all := append(zonesCommands(), command.SetLevel{Level: 1, By: "deploy", Defaults: fullDefaults().Defaults, Place: 1 << 50}, fullRelease())
	for _, c := range slices.Concat(keyCommands(), actsCommands(), stepsCommands(), sightCommands(), lifeCommands(), firstCommands()) {
		if !slices.ContainsFunc(all, func(other command.Command) bool { return command.KindOf(other) == command.KindOf(c) }) {
			all = append(all, c)
		}
	}
	return all
}

// drawBytes draws nil or at least one byte: an empty slice decodes as nil.
func drawBytes(t *rapid.T, label string) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, label)
	if len(b) == 0 {
		return nil
	}
	return b
}

func drawID(t *rapid.T, label string) uint64 {
	return rapid.Uint64Range(0, record.IDMax).Draw(t, label)
}

func drawHold(t *rapid.T) command.Hold {
	return command.Hold{ID: drawID(t, "id"), WorkerID: drawName(t, "worker"), Token: drawID(t, "token")}
}

// drawName draws a name that another one in the same command often equals.
func drawName(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "mail", "sms"}), rapid.String()).Draw(t, label)
}

// drawSlice draws nil or up to 5 elements.
func drawSlice[T any](t *rapid.T, label string, draw func(*rapid.T) T) []T {
	var all []T
	for range rapid.IntRange(0, 5).Draw(t, label) {
		all = append(all, draw(t))
	}
	return all
}

// drawCommand draws any value of any command that the wire can carry, sensible
// or not.
func drawCommand(t *rapid.T) command.Command {
	return drawOf(t, rapid.SampledFrom(knownKinds()).Draw(t, "kind"))
}

// drawOf is drawCommand for a kind.
func drawOf(t *rapid.T, k command.Kind) command.Command {
	str, i64, i32, u32 := rapid.String(), rapid.Int64(), rapid.Int32(), rapid.Uint32()
	switch k {
	case command.KindSubmit:
		return command.Submit{Tasks: drawSlice(t, "tasks", drawMaybeParent)}
	case command.KindClaimNext:
		return drawClaimNext(t)
	case command.KindClaimTask:
		return command.ClaimTask{
			ID: drawID(t, "id"), WorkerID: str.Draw(t, "worker"), LeaseMS: i64.Draw(t, "lease"),
			RequestID: str.Draw(t, "request"),
		}
	case command.KindComplete:
		return command.Complete{
			Hold: drawHold(t), Result: drawBytes(t, "result"), ResultPayload: drawBytes(t, "payload"),
			Submit: drawSlice(t, "submit", drawMaybeParent), Claim: drawPointer(t, "claim", drawClaimNext),
			Late: rapid.Bool().Draw(t, "late"),
		}
	case command.KindFail:
		return command.Fail{
			Hold: drawHold(t), Error: str.Draw(t, "error"), RetryIn: rapid.Bool().Draw(t, "retry"),
			RetryInMS: i64.Draw(t, "retry in"), Permanent: rapid.Bool().Draw(t, "permanent"),
		}
	case command.KindExtend:
		return command.Extend{Hold: drawHold(t), LeaseMS: i64.Draw(t, "lease"), Progress: drawBytes(t, "progress"), Exact: rapid.Bool().Draw(t, "exact")}
	case command.KindRelease:
		return command.Release{Hold: drawHold(t), DelayMS: i64.Draw(t, "delay"), Answer: rapid.Uint32().Draw(t, "answer")}
	case command.KindRetry:
		return command.Retry{ID: drawID(t, "id"), Token: drawID(t, "token"), AddAttempts: i32.Draw(t, "attempts")}
	case command.KindDelete:
		return command.Delete{ID: drawID(t, "id")}
	case command.KindExpire:
		return command.Expire{Items: drawSlice(t, "items", func(t *rapid.T) command.Lease {
			return command.Lease{TaskID: drawID(t, "id"), Token: drawID(t, "token"), Seq: u32.Draw(t, "seq")}
		})}
	case command.KindSetNode:
		return command.SetNode{Node: record.NodeRecord{
			UUID: str.Draw(t, "uuid"), NodeID: str.Draw(t, "node"), PeerAddr: str.Draw(t, "peer"),
			HTTPAddr: str.Draw(t, "http"), Version: str.Draw(t, "version"), Level: u32.Draw(t, "level"),
			Nonvoter: rapid.Bool().Draw(t, "nonvoter"),
		}}
	case command.KindRemoveNode:
		return command.RemoveNode{UUID: str.Draw(t, "uuid")}
	case command.KindSetLevel:
		return command.SetLevel{Level: rapid.Uint32Range(0, record.FeatureLevel).Draw(t, "level"), By: str.Draw(t, "by"), Defaults: drawSetDefaults(t).Defaults, Place: rapid.Uint64Range(0, 1<<52).Draw(t, "place")}
	case command.KindTick:
		return command.Tick{}
	case command.KindCheckpoint:
		return command.Checkpoint{}
	case command.KindTell:
		return drawTell(t)
	case command.KindSetDefaults:
		return drawSetDefaults(t)
	case command.KindSetJoinToken, command.KindDeleteJoinToken, command.KindUseJoinToken:
		return drawJoinToken(t, k)
	case command.KindMoveTasks:
		return command.MoveTasks{
			Type: str.Draw(t, "type"), Cancel: rapid.Uint64().Draw(t, "cancel"), To: str.Draw(t, "to"), Rate: i32.Draw(t, "rate"), By: str.Draw(t, "by"),
		}
	case command.KindSetShare:
		return command.SetShare{Type: str.Draw(t, "type"), ShareKey: str.Draw(t, "share key"), By: str.Draw(t, "by"), Settings: record.ShareSettings{
			Paused: rapid.Bool().Draw(t, "paused"), MaxClaimed: i32.Draw(t, "max claimed"), Weight: i32.Draw(t, "weight"), RateLimit: rapid.Int64().Draw(t, "rate"),
		}}
	case command.KindSetPageSecret:
		return command.SetPageSecret{Secret: drawBytes(t, "secret")}
	case command.KindRestoreBegin, command.KindRestoreChunk, command.KindRestoreEnd:
		return drawRestore(t, k)
	}
	return drawLife(t, k)
}

// drawLife draws a command that appeared at level 2.
func drawLife(t *rapid.T, k command.Kind) command.Command {
	i64, i32 := rapid.Int64(), rapid.Int32()
	switch k {
	case command.KindCancel:
		return command.Cancel{ID: drawID(t, "id")}
	case command.KindSignal:
		return command.Signal{ID: drawID(t, "id"), Body: drawBytes(t, "body"), By: rapid.String().Draw(t, "by")}
	case command.KindPatch:
		return command.Patch{
			ID: drawID(t, "id"), SetPriority: rapid.Bool().Draw(t, "set priority"), Priority: i32.Draw(t, "priority"),
			SetRunAt: rapid.Bool().Draw(t, "set run at"), RunAt: i64.Draw(t, "run at"),
			SetLabels: rapid.Bool().Draw(t, "set labels"), Labels: drawSlice(t, "labels", drawLabel),
			SetShareKey: rapid.Bool().Draw(t, "set share key"), ShareKey: rapid.String().Draw(t, "share key"),
		}
	case command.KindSetType:
		return command.SetType{
			Type: rapid.String().Draw(t, "type"), Set: record.TypeFields(rapid.Uint32Range(0, uint32(record.TypeFieldsAll)).Draw(t, "set")),
			Settings: record.TypeSettings{
				Paused: rapid.Bool().Draw(t, "paused"), MaxClaimed: i32.Draw(t, "max claimed"), RateLimit: i64.Draw(t, "rate"),
				LeaseMS: i64.Draw(t, "lease"), LimitSet: rapid.Bool().Draw(t, "limit set"), MaxAttempts: i32.Draw(t, "attempts"),
				Backoff: drawPointer(t, "backoff", drawBackoff), RetentionMS: i64.Draw(t, "retention"), Queue: rapid.String().Draw(t, "queue"),
				DelayMS: i64.Draw(t, "delay"), DeadLetter: rapid.String().Draw(t, "dead letter"), DeadLetterAfter: i32.Draw(t, "dead letter after"),
				MaxClaimedPerKey: i32.Draw(t, "max claimed per key"), Fair: rapid.Bool().Draw(t, "fair"),
				RateLimitPerKey: i64.Draw(t, "rate per key"),
			},
			By: rapid.String().Draw(t, "by"), IfQueue: rapid.Bool().Draw(t, "if queue"), Queue: rapid.String().Draw(t, "the queue"),
		}
	case command.KindForget:
		return command.Forget{Bytes: i64.Draw(t, "bytes")}
	case command.KindEvict:
		return command.Evict{Bytes: i64.Draw(t, "bytes")}
	case command.KindBatch:
		ops := slices.DeleteFunc(knownKinds(), func(k command.Kind) bool { return !k.Row().Op })
		return command.Batch{Atomic: rapid.Bool().Draw(t, "atomic"), RequestID: rapid.String().Draw(t, "request"), Ops: drawSlice(t, "ops", func(t *rapid.T) command.Command {
			k := rapid.SampledFrom(ops).Draw(t, "op")
			if k == command.KindSubmit {
				return command.Submit{Tasks: []record.NewTask{drawMaybeParent(t)}}
			}
			return drawOf(t, k)
		})}
	}
	return drawSight(t, k)
}

func drawNewTask(t *rapid.T) record.NewTask {
	str, i64, i32 := rapid.String(), rapid.Int64(), rapid.Int32()
	return record.NewTask{
		Type: drawName(t, "type"), Params: drawBytes(t, "params"), Payload: drawBytes(t, "payload"),
		Priority: i32.Draw(t, "priority"), MaxAttempts: i32.Draw(t, "max attempts"),
		Key: str.Draw(t, "key"), LeaseMS: i64.Draw(t, "lease"),
		RunAt: i64.Draw(t, "run at"), DelayMS: i64.Draw(t, "delay"), AtOnce: rapid.Bool().Draw(t, "at once"), ExpiresAt: i64.Draw(t, "expires"), ExpiresAgain: rapid.Bool().Draw(t, "again"),
		Backoff: drawPointer(t, "backoff", drawBackoff), RetentionMS: i64.Draw(t, "retention"),
		Labels: drawSlice(t, "labels", drawLabel), Group: str.Draw(t, "group"),
		UniqueActive: rapid.Bool().Draw(t, "unique"), UniqueMS: i64.Draw(t, "window"), SignalMS: i64.Draw(t, "signal"), Replace: rapid.Bool().Draw(t, "replace"), Traceparent: str.Draw(t, "traceparent"), Attributes: drawBytes(t, "attributes"),
		KeyOfType: rapid.Bool().Draw(t, "key of type"), ShareKey: str.Draw(t, "share key"),
	}
}

func drawClaimNext(t *rapid.T) command.ClaimNext {
	str := rapid.String()
	return command.ClaimNext{
		WorkerID:  drawName(t, "worker"),
		Types:     drawTypes(t),
		SortBy:    rapid.SampledFrom([]command.SortBy{command.SortPriority, command.SortCreatedAt, command.SortRandom}).Draw(t, "sort by"),
		Ascending: rapid.Bool().Draw(t, "ascending"), Limit: rapid.Int32().Draw(t, "limit"),
		LeaseMS: rapid.Int64().Draw(t, "lease"), RequestID: str.Draw(t, "request"),
		MoreAttempts: rapid.Int32().Draw(t, "more attempts"), RequestPlace: rapid.Uint32().Draw(t, "place"), Runs: rapid.Bool().Draw(t, "runs"),
	}
}

// drawTypes draws any list but the one that means any type behind another list.
func drawTypes(t *rapid.T) []string {
	types := drawSlice(t, "types", func(t *rapid.T) string { return drawName(t, "type") })
	if len(types) == 1 && types[0] == "" {
		return nil
	}
	return types
}

func drawBackoff(t *rapid.T) record.Backoff {
	i64 := rapid.Int64()
	return record.Backoff{InitialMS: i64.Draw(t, "initial"), MaxMS: i64.Draw(t, "max"), Factor: i64.Draw(t, "factor"), Jitter: i64.Draw(t, "jitter")}
}

func drawLabel(t *rapid.T) record.Label {
	return record.Label{Name: rapid.String().Draw(t, "name"), Value: rapid.String().Draw(t, "value")}
}

// drawPointer draws nil, or a value that is not zero: a message without fields
// is not written.
func drawPointer[T any](t *rapid.T, label string, draw func(*rapid.T) T) *T {
	if rapid.Bool().Draw(t, "no "+label) {
		return nil
	}
	v := draw(t)
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return &v
}

// knownKinds returns every command type of the table.
func knownKinds() []command.Kind {
	var all []command.Kind
	for k := range command.Kind(math.MaxUint8) {
		if k.Row() != nil {
			all = append(all, k)
		}
	}
	return all
}

func TestDecodeEntry_RoundTrip(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		stamp := record.Stamp{U: rapid.Int64().Draw(t, "U"), T: rapid.Int64().Draw(t, "T")}
		commands := make([]command.Command, 0)
		for range rapid.IntRange(0, 8).Draw(t, "commands") {
			commands = append(commands, drawCommand(t))
		}
		entry := command.AppendEntry([]byte("before"), stamp, commands...)[len("before"):]
		given := bytes.Clone(entry)
		gotStamp, got, err := command.DecodeEntry(entry)
		if err != nil {
			t.Fatal(err)
		}
		clear(entry) // nothing decoded may share its memory
		if diff := cmp.Diff(commands, got); diff != "" || gotStamp != stamp {
			t.Fatalf("stamp %v, want %v; commands (-encoded +decoded):\n%s", gotStamp, stamp, diff)
		}
		if again := command.AppendEntry(nil, gotStamp, got...); !bytes.Equal(again, given) {
			t.Fatalf("encoded again:\n%x, want\n%x", again, given)
		}
	})
}

// What the batcher does: header and commands put together from parts.
func TestAppendCommand_ConcatenatesToAnEntry(t *testing.T) {
	t.Parallel()
	commands := fullCommands()
	parts := command.AppendEntryHeader(nil, fullStamp, len(commands))
	for _, c := range commands {
		parts = append(parts, command.AppendCommand(nil, c)...)
	}
	if whole := command.AppendEntry(nil, fullStamp, commands...); !bytes.Equal(parts, whole) {
		t.Fatalf("from parts:\n%x, want\n%x", parts, whole)
	}
}

func TestAppendCommand_IDsOutOfRangeNameNothing(t *testing.T) {
	t.Parallel()
	c := command.Complete{Hold: command.Hold{ID: 1<<53 + 1, WorkerID: "w", Token: math.MaxUint64}}
	_, got, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, c))
	if err != nil {
		t.Fatal(err)
	}
	want := []command.Command{command.Complete{Hold: command.Hold{ID: record.IDMax, WorkerID: "w", Token: record.IDMax}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// A message without fields is not written in any place, because it would make an entry that
// no node can read.
func TestAppendCommand_MessagesWithoutFieldsAreNotWritten(t *testing.T) {
	t.Parallel()
	empty := &record.Backoff{}
	_, got, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{},
		command.Submit{Tasks: []record.NewTask{{Backoff: empty}}},
		command.Complete{Submit: []record.NewTask{{Backoff: empty}}, Claim: &command.ClaimNext{}},
		command.SetType{Settings: record.TypeSettings{Backoff: empty}},
		command.SetNode{},
		command.SetSchedule{Schedule: record.Schedule{Task: record.NewTask{Backoff: empty}}},
		command.Act{IDs: []uint64{0}},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []command.Command{command.Submit{Tasks: []record.NewTask{{}}}, command.Complete{Submit: []record.NewTask{{}}}, command.SetType{}, command.SetNode{}, command.SetSchedule{}, command.Act{IDs: []uint64{0}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// What no node could read is not written.
func TestAppendCommand_PanicsAtWhatIsNoOp(t *testing.T) {
	t.Parallel()
	for _, op := range []command.Command{command.Batch{}, command.Tick{}, command.ClaimTask{}, command.Submit{}, command.Submit{Tasks: make([]record.NewTask, 2)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a batch with a %T %v was written", op, op)
				}
			}()
			command.AppendCommand(nil, command.Batch{Ops: []command.Command{op}})
		}()
	}
}

// entryOf makes an entry of one command from its type and body.
func entryOf(k command.Kind, body ...byte) []byte {
	b := command.AppendEntryHeader(nil, record.Stamp{}, 1)
	return protowire.AppendBytes(append(b, byte(k)), body)
}

func TestDecodeEntry_Refuses(t *testing.T) {
	t.Parallel()
	tooLarge := protowire.AppendVarint([]byte{0x08}, record.IDMax+1)
	parentOf := func(parent ...byte) []byte {
		task := protowire.AppendBytes([]byte{0x8a, 1}, parent)
		return entryOf(command.KindSubmit, protowire.AppendBytes([]byte{10}, task)...)
	}
	tests := []struct {
		name  string
		entry []byte
		want  error
		names string // what the message must name
	}{
		{"no bytes", nil, ErrCorrupt, "empty"},
		{"a version of the future", []byte{record.Format + 1, 0, 0, 0}, ErrUnknownCommand, "format 15"},
		{"a version never used", []byte{0, 0, 0, 0}, ErrUnknownCommand, "format 0"},
		{"a development build's", []byte{1, 0, 0, 0}, ErrDevelopment, "format 1"},
		{"a header cut off", []byte{record.Format, 0, 0}, ErrCorrupt, "header"},
		{"a clock in more bytes than it takes", []byte{record.Format, 0x80, 0, 0, 0}, ErrCorrupt, "header"},
		{"a clock of more than 64 bits", append(append([]byte{record.Format}, bytes.Repeat([]byte{0xff}, 10)...), 1, 0, 0), ErrCorrupt, "header"},
		{"fewer commands than counted", []byte{record.Format, 0, 0, 2, byte(command.KindTick), 0}, ErrCorrupt, "2 commands"},
		{"a count past every bound", append([]byte{record.Format, 0, 0}, protowire.AppendVarint(nil, math.MaxUint64)...), ErrCorrupt, "commands in 0 bytes"},
		{"a command cut off", []byte{record.Format, 0, 0, 2, byte(command.KindTick), 0, byte(command.KindTick)}, ErrCorrupt, "2 commands"},
		{"bytes behind the last command", append(entryOf(command.KindTick), 0), ErrCorrupt, "1 bytes behind"},
		{"a length past the end", []byte{record.Format, 0, 0, 1, byte(command.KindDelete), 3, 8, 1}, ErrCorrupt, "length 3 of 2"},
		{"a length in more bytes than it takes", []byte{record.Format, 0, 0, 1, byte(command.KindTick), 0x80, 0}, ErrCorrupt, "bad length"},
		{"command type 0", entryOf(0), ErrUnknownCommand, "command 1 of 1: "},
		{"a command type of the future", entryOf(77), ErrUnknownCommand, "type 77"},
		{"the highest command type", entryOf(255), ErrUnknownCommand, "type 255"},
		{"a field of the future", entryOf(command.KindDelete, 8, 1, 0x78, 1), ErrUnknownCommand, "delete: "},
		{"a field of the future in a command without fields", entryOf(command.KindTick, 8, 1), ErrUnknownCommand, "tick: "},
		{"a field of the future in a task", entryOf(command.KindSubmit, 10, 3, 0xe8, 1, 1), ErrUnknownCommand, "field 29"},
		{"a field of the future in a follow-up", entryOf(command.KindComplete, 0x32, 3, 0xe8, 1, 1), ErrUnknownCommand, "field 29"},
		{"a field of the future in a parent", parentOf(0x0a, 0, 0x20, 1), ErrUnknownCommand, "field 4"},
		{"a field of the future in a step", parentOf(0x0a, 2, 0x20, 1), ErrUnknownCommand, "field 4"},
		{"steps of a step", parentOf(0x0a, 9, 0x1a, 7, 0x8a, 1, 4, 0x0a, 2, 0x0a, 0), ErrUnknownCommand, "field 17"},
		{"steps of a step of a schedule's task", entryOf(command.KindSetSchedule, 10, 16, 0x12, 14, 0x8a, 1, 11, 0x0a, 9, 0x1a, 7, 0x8a, 1, 4, 0x0a, 2, 0x0a, 0), ErrUnknownCommand, "field 17"},
		{"a parent without steps", parentOf(0x10, 1), ErrCorrupt, "without steps"},
		{"an empty parent written out", entryOf(command.KindSubmit, 10, 3, 0x8a, 1, 0), ErrCorrupt, "empty"},
		{"two parents of a task", entryOf(command.KindSubmit, 10, 10, 0x8a, 1, 2, 0x0a, 0, 0x8a, 1, 2, 0x0a, 0), ErrCorrupt, "twice"},
		{"an empty task of a step written out", parentOf(0x0a, 2, 0x1a, 0), ErrCorrupt, "empty"},
		{"a step that depends on itself", parentOf(0x0a, 2, 0x10, 0), ErrCorrupt, "itself"},
		{"a step that depends on none", parentOf(0x0a, 2, 0x10, 1), ErrCorrupt, "not there"},
		{"a step that depends on one twice", parentOf(0x0a, 0, 0x0a, 4, 0x10, 0, 0x10, 0), ErrCorrupt, "ascend"},
		{"dependencies out of order", parentOf(0x0a, 0, 0x0a, 0, 0x0a, 4, 0x10, 1, 0x10, 0), ErrCorrupt, "ascend"},
		{"a dependency past every step", parentOf(0x0a, 3, 0x10, 0xe8, 7), ErrCorrupt, "no step has"},
		{"steps that depend on each other", parentOf(0x0a, 2, 0x10, 1, 0x0a, 2, 0x10, 0), ErrCorrupt, "circle"},
		{"dependencies packed", parentOf(0x0a, 0, 0x0a, 3, 0x12, 1, 0), ErrCorrupt, "not a varint"},
		{"a field of the future in a claim of a finalization", entryOf(command.KindClaimFinalization, 0x20, 1), ErrUnknownCommand, "field 4"},
		{"a field of the future in an extend of one", entryOf(command.KindExtendFinalization, 0x20, 1), ErrUnknownCommand, "field 4"},
		{"a field of the future in a release of one", entryOf(command.KindReleaseFinalization, 0x18, 1), ErrUnknownCommand, "field 3"},
		{"a field of the future in a finalize", entryOf(command.KindFinalize, 0x38, 1), ErrUnknownCommand, "field 7"},
		{"a claim of a finalization in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindClaimFinalization)), ErrUnknownCommand, "claim finalization in a batch"},
		{"a finalize in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindFinalize)), ErrUnknownCommand, "finalize in a batch"},
		{"a field of the future in the next claim", entryOf(command.KindComplete, 0x3a, 2, 0x50, 1), ErrUnknownCommand, "field 10"},
		{"a field of the future in a backoff", entryOf(command.KindSubmit, 10, 4, 0x5a, 2, 0x28, 1), ErrUnknownCommand, "field 5"},
		{"a field of the future in a label", entryOf(command.KindPatch, 0x3a, 2, 0x18, 1), ErrUnknownCommand, "field 3"},
		{"a field of the future in settings", entryOf(command.KindSetType, 0x1a, 3, 0x80, 1, 1), ErrUnknownCommand, "field 16"},
		{"a field of the future in defaults", entryOf(command.KindSetDefaults, 0x12, 3, 0x80, 1, 1), ErrUnknownCommand, "field 16"},
		{"a field of the future in a share", entryOf(command.KindSetShare, 0x28, 1), ErrUnknownCommand, "field 5"},
		{"a field of the future in settings of a share", entryOf(command.KindSetShare, 0x1a, 2, 0x28, 1), ErrUnknownCommand, "field 5"},
		{"a pause by default", entryOf(command.KindSetDefaults, 0x12, 2, 8, 1), ErrCorrupt, "no default"},
		{"a default of the future", entryOf(command.KindSetDefaults, 8, 1), ErrUnknownCommand, "default in 1"},
		{"a field of the future in an action", entryOf(command.KindAct, 0x30, 1), ErrUnknownCommand, "field 6"},
		{"a field of the future in a filter", entryOf(command.KindAct, 0x1a, 2, 0x50, 1), ErrUnknownCommand, "field 10"},
		{"a field of the future in a schedule", entryOf(command.KindSetSchedule, 10, 2, 0x58, 1), ErrUnknownCommand, "field 11"},
		{"a field of the future in a schedule's task", entryOf(command.KindSetSchedule, 10, 5, 0x12, 3, 0xc0, 1, 1), ErrUnknownCommand, "field 24"},
		{"another field of the future in a schedule's task", entryOf(command.KindSetSchedule, 10, 5, 0x12, 3, 0xe8, 1, 1), ErrUnknownCommand, "field 29"},
		{"a field of the future in a slot", entryOf(command.KindRunSchedules, 10, 2, 0x48, 1), ErrUnknownCommand, "field 9"},
		{"a field of the future in the bounds of the trail", entryOf(command.KindSetTrail, 0x18, 1), ErrUnknownCommand, "field 3"},
		{"an action of the future", entryOf(command.KindAct, 8, 4), ErrUnknownCommand, "value 4"},
		{"a status of the future in a filter", entryOf(command.KindAct, 0x1a, 2, 8, 9), ErrUnknownCommand, "value 9"},
		{"a setting of the future", entryOf(command.KindSetType, 0x10, 0x80, 0x40), ErrUnknownCommand, "10000000000000"},
		{"an order of the future", entryOf(command.KindClaimNext, 0x18, 3), ErrUnknownCommand, "value 3"},
		{"a command of the future in a batch", entryOf(command.KindBatch, 0x12, 1, 77), ErrUnknownCommand, "type 77 in a batch"},
		{"a batch in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindBatch)), ErrUnknownCommand, "batch in a batch"},
		{"an expiry in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindExpire)), ErrUnknownCommand, "expire in a batch"},
		{"an action in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindAct)), ErrUnknownCommand, "act in a batch"},
		{"a tick in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindTick)), ErrUnknownCommand, "tick in a batch"},
		{"a field of the future in an op", entryOf(command.KindBatch, 0x12, 3, byte(command.KindCancel), 0x78, 1), ErrUnknownCommand, "cancel: "},
		{"an op without a kind", entryOf(command.KindBatch, 0x12, 0), ErrCorrupt, "without a kind"},
		{"a submit of no task in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindSubmit)), ErrCorrupt, "not one task"},
		{"a submit of two tasks in a batch", entryOf(command.KindBatch, 0x12, 5, byte(command.KindSubmit), 10, 0, 10, 0), ErrCorrupt, "not one task"},
		{"an op past its batch", entryOf(command.KindBatch, 0x12, 3, byte(command.KindDelete), 8), ErrCorrupt, "length 3 of 2"},
		{"a bad op", entryOf(command.KindBatch, 0x12, 2, byte(command.KindDelete), 8), ErrCorrupt, "bad varint"},
		{"an empty backoff written out", entryOf(command.KindSubmit, 10, 2, 0x5a, 0), ErrCorrupt, "empty"},
		{"an empty next claim written out", entryOf(command.KindComplete, 0x3a, 0), ErrCorrupt, "empty"},
		{"empty settings written out", entryOf(command.KindSetType, 0x1a, 0), ErrCorrupt, "empty"},
		{"an empty node written out", entryOf(command.KindSetNode, 10, 0), ErrCorrupt, "empty"},
		{"an empty filter written out", entryOf(command.KindAct, 0x1a, 0), ErrCorrupt, "empty"},
		{"an empty schedule written out", entryOf(command.KindSetSchedule, 10, 0), ErrCorrupt, "empty"},
		{"an empty task of a schedule written out", entryOf(command.KindSetSchedule, 10, 2, 0x12, 0), ErrCorrupt, "empty"},
		{"two tasks of a schedule", entryOf(command.KindSetSchedule, 10, 8, 0x12, 2, 0x20, 1, 0x12, 2, 0x20, 1), ErrCorrupt, "twice"},
		{"ids of an action packed", entryOf(command.KindAct, 0x12, 1, 1), ErrCorrupt, "not a varint"},
		{"two next claims", entryOf(command.KindComplete, 0x3a, 2, 0x28, 1, 0x3a, 2, 0x28, 1), ErrCorrupt, "twice"},
		{"an event of the future", entryOf(command.KindTell, 8, byte(event.Last)+1), ErrUnknownCommand, "value 58"},
		{"a field of the future in a restore's begin", entryOf(command.KindRestoreBegin, 0x10, 1), ErrUnknownCommand, "field 2"},
		{"a field of the future in a restore's chunk", entryOf(command.KindRestoreChunk, 0x20, 1), ErrUnknownCommand, "field 4"},
		{"a field of the future in a restore's end", entryOf(command.KindRestoreEnd, 0x10, 1), ErrUnknownCommand, "field 2"},
		{"an end of a restore in a batch", entryOf(command.KindBatch, 0x12, 1, byte(command.KindRestoreEnd)), ErrUnknownCommand, "restore end in a batch"},
		{"a field of the future in a tell", entryOf(command.KindTell, 0x20, 1), ErrUnknownCommand, "field 4"},
		{"a feature level of the future", entryOf(command.KindSetLevel, 8, byte(record.FeatureLevel)+1), ErrUnknownCommand, "feature level"},
		{"field number 0", entryOf(command.KindDelete, 0, 1), ErrCorrupt, "field number"},
		{"a tag cut off", entryOf(command.KindDelete, 0x80), ErrCorrupt, "bad tag"},
		{"a field without its value", entryOf(command.KindDelete, 8), ErrCorrupt, "bad varint"},
		{"a field of the wrong type", entryOf(command.KindDelete, 10, 1, 1), ErrCorrupt, "not a varint"},
		{"a number where a string is meant", entryOf(command.KindRemoveNode, 8, 1), ErrCorrupt, "no length"},
		{"a field twice", entryOf(command.KindDelete, 8, 1, 8, 1), ErrCorrupt, "twice"},
		{"a string twice", entryOf(command.KindRemoveNode, 10, 1, 'a', 10, 1, 'a'), ErrCorrupt, "twice"},
		{"fields out of order", entryOf(command.KindRetry, 0x10, 1, 8, 1), ErrCorrupt, "field 1 after it"},
		{"a zero written out", entryOf(command.KindDelete, 8, 0), ErrCorrupt, "zero"},
		{"an empty string written out", entryOf(command.KindRemoveNode, 10, 0), ErrCorrupt, "empty"},
		{"a task's type that is the one before", entryOf(command.KindSubmit, 10, 3, 10, 1, 'a', 10, 3, 10, 1, 'a'), ErrCorrupt, "the one before"},
		{"a worker that is the one of the completion", entryOf(command.KindComplete, 0x12, 1, 'w', 0x3a, 3, 10, 1, 'w'), ErrCorrupt, "the one before"},
		{"a worker that is the one of the op before", entryOf(command.KindBatch, 0x12, 4, byte(command.KindFail), 0x12, 1, 'w', 0x12, 4, byte(command.KindExtend), 0x12, 1, 'w'), ErrCorrupt, "the one before"},
		{"types that are those of the op before", entryOf(command.KindBatch, 0x12, 4, byte(command.KindClaimNext), 0x12, 1, 'a', 0x12, 4, byte(command.KindClaimNext), 0x12, 1, 'a'), ErrCorrupt, "the one before"},
		{"no worker, where none was before", entryOf(command.KindClaimNext, 10, 0), ErrCorrupt, "the one before"},
		{"a varint in more bytes than it takes", entryOf(command.KindDelete, 8, 0x81, 0), ErrCorrupt, "bad varint"},
		{"a string past its command", entryOf(command.KindRemoveNode, 10, 2, 'a'), ErrCorrupt, "length 2 of 1"},
		{"a task past its command", entryOf(command.KindSubmit, 10, 9, 10, 1, 'a'), ErrCorrupt, "length 9 of 3"},
		{"an id above 2^53", entryOf(command.KindDelete, tooLarge...), ErrCorrupt, "above 9007199254740992"},
		{"an id of an action above 2^53", entryOf(command.KindAct, append([]byte{0x10}, tooLarge[1:]...)...), ErrCorrupt, "above 9007199254740992"},
		{"a token above 2^53", entryOf(command.KindRetry, append([]byte{0x10}, tooLarge[1:]...)...), ErrCorrupt, "above"},
		{"a bool of 2", entryOf(command.KindClaimNext, 0x20, 2), ErrCorrupt, "above 1"},
		{"an int32 of 33 bits", entryOf(command.KindClaimNext, append([]byte{0x28}, tooLarge[1:]...)...), ErrCorrupt, "no int32"},
		{"a uint32 of 33 bits", entryOf(command.KindSetLevel, tooLarge...), ErrCorrupt, "above 4294967295"},
		{"an sint32 of 33 bits", entryOf(command.KindSubmit, append([]byte{10, 9, 0x20}, tooLarge[1:]...)...), ErrCorrupt, "above 4294967295"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, commands, err := command.DecodeEntry(test.entry)
			if !errors.Is(err, test.want) || commands != nil {
				t.Fatalf("commands %v, error %v; want %v", commands, err, test.want)
			}
			if !strings.Contains(err.Error(), test.names) {
				t.Errorf("error %q does not name %q", err, test.names)
			}
		})
	}
}

// checkDecode holds DecodeEntry to its promises for any bytes.
func checkDecode(t *testing.T, entry []byte) {
	t.Helper()
	stamp, commands, err := command.DecodeEntry(entry)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownCommand) && !errors.Is(err, ErrDevelopment) {
			t.Fatalf("%x: error %v is not one of DecodeEntry's", entry, err)
		}
		return
	}
	if again := command.AppendEntry(nil, stamp, commands...); !bytes.Equal(again, entry) {
		t.Fatalf("decoded\n%x\nencodes to\n%x", entry, again)
	}
}

// mutate changes b, which it may overwrite, as rot, a torn write or a bug would.
func mutate(r *rand.Rand, b []byte) []byte {
	for range 1 + r.IntN(4) {
		if len(b) == 0 {
			return b
		}
		i := r.IntN(len(b))
		switch r.IntN(5) {
		case 0:
			b[i] ^= 1 << r.IntN(8)
		case 1:
			b[i] = byte(r.Uint32())
		case 2:
			b = b[:i]
		case 3:
			b = append(b[:i], b[i+1:]...)
		case 4:
			b = append(b[:i], append([]byte{byte(r.Uint32())}, b[i:]...)...)
		}
	}
	return b
}

func TestDecodeEntry_MutatedEntries(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seeds := seedEntries()
	for i := range 20_000 {
		checkDecode(t, mutate(r, bytes.Clone(seeds[i%len(seeds)])))
	}
}

func TestDecodeEntry_EveryPrefixIsRefused(t *testing.T) {
	t.Parallel()
	for _, entry := range seedEntries() {
		for n := range entry {
			if _, _, err := command.DecodeEntry(entry[:n]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%d bytes of %x: error %v, want ErrCorrupt", n, entry, err)
			}
		}
	}
}

// seedEntries returns an entry of each command, and one of all.
func seedEntries() [][]byte {
	all := [][]byte{command.AppendEntry(nil, fullStamp, fullCommands()...)}
	for _, c := range fullCommands() {
		all = append(all, command.AppendEntry(nil, fullStamp, c))
	}
	return all
}

// decodeAllocFactor bounds what DecodeEntry may allocate per byte of input: an
// empty step takes 2 bytes.
const decodeAllocFactor = unsafe.Sizeof(record.NewStep{})/2 + 8

func TestDecodeEntry_AllocatesInProportion(t *testing.T) {
	emptyTasks := bytes.Repeat([]byte{10, 0}, 50_000)
	emptyTypes := bytes.Repeat([]byte{18, 0}, 50_000)
	ids := bytes.Repeat([]byte{0x10, 0}, 50_000)
	steps := protowire.AppendBytes([]byte{10}, protowire.AppendBytes([]byte{0x8a, 1}, bytes.Repeat([]byte{10, 0}, record.StepsMax)))
	ticks := command.AppendEntryHeader(nil, record.Stamp{}, 50_000)
	claims := command.AppendEntryHeader(nil, record.Stamp{}, 50_000)
	var ops []byte
	for range 50_000 {
		ticks = append(ticks, byte(command.KindTick), 0)
		claims = append(claims, byte(command.KindClaimNext), 0)
		ops = append(ops, 0x12, 1, byte(command.KindComplete))
	}
	for name, entry := range map[string][]byte{
		"empty tasks": entryOf(command.KindSubmit, emptyTasks...), "empty types": entryOf(command.KindClaimNext, emptyTypes...),
		"empty items": entryOf(command.KindExpire, emptyTasks...), "ticks": ticks, "claims": claims,
		"empty follow-ups": entryOf(command.KindComplete, bytes.Repeat([]byte{0x32, 0}, 50_000)...),
		"empty labels":     entryOf(command.KindPatch, bytes.Repeat([]byte{0x3a, 0}, 50_000)...),
		"empty ops":        entryOf(command.KindBatch, ops...),
		"empty steps":      entryOf(command.KindSubmit, protowire.AppendBytes([]byte{10}, protowire.AppendBytes([]byte{0x8a, 1}, emptyTasks))...),
		"parents":          entryOf(command.KindSubmit, bytes.Repeat(steps, 50)...),
		"empty slots":      entryOf(command.KindRunSchedules, emptyTasks...),
		"ids":              entryOf(command.KindAct, ids...),
		"a task cut off":   entryOf(command.KindSubmit, append(emptyTasks, 10, 9)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _ = command.DecodeEntry(entry)
		runtime.ReadMemStats(&after)
		if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(decodeAllocFactor)*uint64(len(entry)); got > bound {
			t.Errorf("%s: %d bytes allocated for an entry of %d, want at most %d", name, got, len(entry), bound)
		}
	}
}

func TestEntry_HotCommandsAllocateLittle(t *testing.T) {
	buf := make([]byte, 0, 4096)
	payload := bytes.Repeat([]byte{7}, 256)
	tests := []struct {
		c      command.Command
		decode float64
	}{
		// the list of commands and the command itself, then:
		{command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: payload, MaxAttempts: -1}}}, 2 + 3},    // tasks, type, payload
		{command.ClaimNext{WorkerID: "w-1", Types: []string{"mail"}, Limit: 1}, 2 + 3},                         // worker, types, type
		{command.Complete{Hold: command.Hold{ID: 1000, WorkerID: "w-1", Token: 1000}, Result: payload}, 2 + 2}, // worker, result
	}
	for _, test := range tests {
		if got := testing.AllocsPerRun(100, func() { buf = command.AppendCommand(buf[:0], test.c) }); got != 0 {
			t.Errorf("encoding a %v allocates %v times, want never", command.KindOf(test.c), got)
		}
		entry := command.AppendEntry(nil, fullStamp, test.c)
		if got := testing.AllocsPerRun(100, func() { _, _, _ = command.DecodeEntry(entry) }); got > test.decode {
			t.Errorf("decoding a %v allocates %v times, want %v", command.KindOf(test.c), got, test.decode)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for _, entry := range seedEntries() {
		f.Add(entry)
	}
	f.Add(entryOf(77, 8, 1))
	f.Add(entryOf(command.KindSubmit, 10, 3, 0x80, 1, 1))
	f.Add(entryOf(command.KindSubmit, 10, 5, 0x8a, 1, 2, 0x0a, 0))
	f.Add(entryOf(command.KindBatch, 0x12, 1, byte(command.KindBatch)))
	f.Add(entryOf(command.KindBatch, 0x12, 1, byte(command.KindSubmit)))
	f.Fuzz(checkDecode)
}

func BenchmarkEntry(b *testing.B) {
	submit := command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: bytes.Repeat([]byte{7}, 256), MaxAttempts: -1}}}
	var c command.Command = submit
	entry := command.AppendEntry(nil, fullStamp, c)
	b.Run("encode submit", func(b *testing.B) {
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			buf = command.AppendCommand(buf[:0], c)
		}
	})
	b.Run("decode submit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = command.DecodeEntry(entry)
		}
	})
}
