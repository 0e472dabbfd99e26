package fsm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// Golden files hold what was written once and must be read for ever. They are
// only ever added to: the flag writes those that are missing and never changes
// one that is there.
var addGolden = flag.Bool("add-golden", false, "write the golden files of formats that do not exist yet")

const goldenDir = "testdata/golden"

// goldenEntry is an entry that a golden file of its name holds.
type goldenEntry struct {
	name     string
	comment  string
	stamp    record.Stamp
	commands []command.Command
}

func goldenEntries() []goldenEntry {
	all := []goldenEntry{
		{"entry-empty", "no command, both clocks 0", record.Stamp{}, []command.Command{}},
		{"entry-batch", "what a busy leader packs together, most fields at their zero value", record.Stamp{U: 127, T: 128}, []command.Command{
			command.Submit{Tasks: []record.NewTask{{Type: "default", Params: []byte("1")}, {Type: "default", Payload: []byte{0}, MaxAttempts: 5}}},
			command.ClaimNext{WorkerID: "w", Limit: 1},
			command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w"}},
			command.Tick{},
		}},
	}
	for _, c := range fullCommands() {
		all = append(all, goldenEntry{
			name: strings.ReplaceAll(command.KindOf(c).String(), " ", "-"), stamp: fullStamp, commands: []command.Command{c},
			comment: fmt.Sprintf("command type %d, %v, every field set", command.KindOf(c), command.KindOf(c)),
		})
	}
	all = append(all, goldenEntry{
		name: "keys-of-types", stamp: fullStamp, commands: keyCommands(),
		comment: "command types 1, submit, 4, complete, 15, batch, and 133, set schedule, with key_of_type",
	})
	for i := range all {
		all[i].name = goldenName(all[i].name, all[i].commands)
	}
	return all
}

// goldenName adds the level that the commands need to the name of their golden file, if one of them has a field that is
// newer than it: the file without stays as it is.
func goldenName(name string, commands []command.Command) string {
	var first, needs uint32
	for _, c := range commands {
		first, needs = max(first, command.RowOf(c).Level), max(needs, command.LevelOf(c))
	}
	if needs == first {
		return name
	}
	return fmt.Sprintf("%s-level-%d", name, needs)
}

// readGolden returns the bytes in a hex file: lines of comment begin with #.
func readGolden(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// addMissing writes the file if the flag is set and it does not exist.
func addMissing(t *testing.T, path string, content []byte) {
	t.Helper()
	if _, err := os.Stat(path); !*addGolden || !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// hexFile formats a hex file of 32 bytes a line.
func hexFile(comment string, b []byte) []byte {
	var file bytes.Buffer
	fmt.Fprintf(&file, "# %s\n", comment)
	for len(b) > 0 {
		n := min(32, len(b))
		fmt.Fprintf(&file, "%x\n", b[:n])
		b = b[n:]
	}
	return file.Bytes()
}

func TestGolden_Entries(t *testing.T) {
	t.Parallel()
	for _, g := range goldenEntries() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			encoded := command.AppendEntry(nil, g.stamp, g.commands...)
			path := filepath.Join(goldenDir, g.name+".hex")
			addMissing(t, path, hexFile(g.comment, encoded))
			golden := readGolden(t, path)
			if !bytes.Equal(encoded, golden) {
				t.Errorf("it is encoded as\n%x, the golden file has\n%x; a new field needs a feature level, which names another file", encoded, golden)
			}
			stamp, commands, err := command.DecodeEntry(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(g.commands, commands); diff != "" || stamp != g.stamp {
				t.Errorf("stamp %v, want %v; commands (-want +decoded):\n%s", stamp, g.stamp, diff)
			}
		})
	}
}

// Every golden file stays readable and is written the same way, also one whose
// values are no longer those that stand for all.
func TestGolden_FilesStayReadable(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.hex"))
	if err != nil || len(paths) < len(knownKinds()) {
		t.Fatalf("%d golden files (%v), want one of each of %d commands at least", len(paths), err, len(knownKinds()))
	}
	for _, path := range paths {
		golden := readGolden(t, path)
		stamp, commands, err := command.DecodeEntry(golden)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if again := command.AppendEntry(nil, stamp, commands...); !bytes.Equal(again, golden) {
			t.Errorf("%s is written again as\n%x, want\n%x", path, again, golden)
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".hex"), "-level-")
		if want := goldenName(name, commands) + ".hex"; filepath.Base(path) != want {
			t.Errorf("the commands in %s need another level, that of %s", path, want)
		}
	}
}

// goldenLog leads to the state of the newest golden snapshot, which has every
// kind of record, every field, and a task of every status that a command can
// bring about.
func goldenLog() []testEntry {
	hold := func(id, token uint64) command.Hold { return command.Hold{ID: id, WorkerID: "worker-1", Token: token} }
	entries := [][]command.Command{
		{firstCommands()[12], command.SetNode{Node: record.NodeRecord{UUID: "0196e0a2-0000-7000-8000-000000000002", NodeID: "n2"}}, command.SetLevel{Level: 1}},
		{command.Submit{Tasks: []record.NewTask{
			{Type: "mail", Params: []byte(`{"to":"ann"}`), Key: "order-1", MaxAttempts: record.DefaultAttempts},
			{Type: "mail", Payload: []byte{0, 255}, Priority: -3, LeaseMS: 60_000},
			{Type: "scan", Params: []byte(`[]`), Priority: 7, MaxAttempts: 1},
			{Type: "scan", Params: []byte(`1`), Priority: 7},
			{Type: "scan", Params: []byte(`2`)},
		}}},
		{command.ClaimNext{WorkerID: "worker-1", Types: []string{"mail", "scan"}, Limit: 4, RequestID: "request-1"}}, // tokens 1 to 4: tasks 3, 4, 1, 5
		{command.Fail{Hold: hold(3, 1), Error: "no route"}, command.Complete{Hold: hold(4, 2), Result: []byte(`"done"`)}, command.Release{Hold: hold(5, 4)}},
		{command.Extend{Hold: hold(1, 3), LeaseMS: 90_000}, command.ClaimTask{ID: 5, WorkerID: "worker-2", LeaseMS: 100, RequestID: "request-2"}},
		{command.Expire{Items: []command.Lease{{TaskID: 5, Token: 5, Seq: 1}}}, command.Submit{Tasks: []record.NewTask{{Type: "mail", Payload: []byte{1}}}}},
		{command.ClaimTask{ID: 6, WorkerID: "worker-1"}, command.Complete{Hold: command.Hold{ID: 6, WorkerID: "worker-1"}, ResultPayload: []byte{2}}, command.Checkpoint{}, command.Tick{}},
	}
	entries = append(entries, goldenLife()...)
	entries = append(entries, goldenSight()...)
	entries = append(entries, goldenSteps()...)
	entries = append(entries, goldenActs()...)
	entries = append(entries, goldenKeys()...)
	entries = append(entries, goldenRepeats()...)
	entries = append(entries, goldenZones()...)
	entries = append(entries, goldenDeadLetters()...)
	entries = append(entries, goldenMoves()...)
	entries = append(entries, goldenTurns()...)
	last := len(entries) - 1
	entries[last] = append(entries[last], goldenShares()...)
	log := make([]testEntry, len(entries))
	for i, commands := range entries {
		log[i] = testEntry{
			Index: uint64(10 + 2*i), Commands: commands,
			Stamp: record.Stamp{U: int64(1000 * i), T: 1_780_000_000_000 + int64(1000*i)},
		}
		if i > 12 { // later, the trail's first events are dropped
			log[i].Stamp.T += 45_000 * int64(i-12)
		}
	}
	return log
}

// goldenLife is the part of goldenLog about tasks' lives. It begins with
// id 7 and token 7.
func goldenLife() [][]command.Command {
	hold := func(id, token uint64) command.Hold { return command.Hold{ID: id, WorkerID: "worker-1", Token: token} }
	backoff := &record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2_000_000, Jitter: 200_000}
	labels := []record.Label{{Name: "customer", Value: "ann"}, {Name: "region", Value: "eu"}}
	return [][]command.Command{
		{command.SetType{Type: "scan", Set: record.TypeFieldsAll, Settings: record.TypeSettings{
			MaxClaimed: 10, RateLimit: 2_500_000, LeaseMS: 45_000, LimitSet: true, MaxAttempts: 5, Backoff: backoff, RetentionMS: 3_600_000,
		}}, command.SetType{Type: "video", Set: record.TypePaused, Settings: record.TypeSettings{Paused: true}}},
		{command.Submit{Tasks: []record.NewTask{
			{Type: "scan", Params: []byte("7"), DelayMS: 60_000, ExpiresAt: 1_780_000_120_000, Backoff: backoff, RetentionMS: record.KeepForever, Labels: labels},
			{Type: "mail", Params: []byte("8"), Key: "order-8", Group: "ann", UniqueActive: true, MaxAttempts: record.DefaultAttempts},
			{Type: "mail", Params: []byte("9"), Group: "ann"},
			{Type: "scan", Params: []byte("10"), Key: "order-10", RetentionMS: record.KeepNone},
			{Type: "video", Params: []byte("11")},
		}}},
		{command.ClaimTask{ID: 8, WorkerID: "worker-1"}, command.ClaimTask{ID: 10, WorkerID: "worker-1"}, command.ClaimTask{ID: 2, WorkerID: "worker-1"}}, // tokens 7 to 9
		{command.Extend{Hold: hold(8, 7), Progress: []byte("0.5")}, command.Cancel{ID: 8}, command.Cancel{ID: 11}},
		{command.Complete{
			Hold: hold(10, 8), Result: []byte("1"), Submit: []record.NewTask{{Type: "scan", Params: []byte("12")}, {Type: "mail", Key: "order-8"}},
			Claim: &command.ClaimNext{WorkerID: "worker-1", Types: []string{"scan"}, SortBy: command.SortCreatedAt, Limit: 1, RequestID: "request-3"},
		}},
		{command.Complete{Hold: hold(2, 9), Submit: []record.NewTask{{Type: "mail", Params: []byte("13")}}, Claim: &command.ClaimNext{WorkerID: "worker-1", Limit: 2}}},
	}
}

// goldenSight is the part of goldenLog about schedules and the trail. It begins
// with id 14 and token 13.
func goldenSight() [][]command.Command {
	return [][]command.Command{
		{command.SetTrail{Bytes: 1 << 20, AgeMS: 600_000}, command.Submit{Tasks: []record.NewTask{
			{Type: "mail", Params: []byte("14"), Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Attributes: []byte(`{"a":1}`), ShareKey: "ann"},
		}}},
		{
			command.SetSchedule{Schedule: record.Schedule{
				Name: "hourly", EveryMS: 3_600_000, NextRunAt: 1_780_000_014_000,
				Task: record.NewTask{Type: "report", Params: []byte(`{"of":"hour"}`), MaxAttempts: record.DefaultAttempts},
			}},
			command.SetSchedule{Schedule: record.Schedule{
				Name: "nightly", Cron: "30 2 * * *", Timezone: "Europe/Vienna", OverlapAllow: true, CatchUpSkip: true, NextRunAt: 1_780_014_600_000,
				Task: record.NewTask{
					Type: "report", Payload: []byte{1, 255}, Priority: -1, LeaseMS: 60_000, DelayMS: 1000, RetentionMS: record.KeepForever,
					Backoff: &record.Backoff{InitialMS: 1000, MaxMS: 60_000, Factor: 2_000_000, Jitter: 200_000},
					Labels:  []record.Label{{Name: "region", Value: "eu"}},
					Group:   "reports", UniqueActive: true, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
				},
			}},
			command.SetSchedule{Schedule: record.Schedule{Name: "weekly", Cron: "@weekly", Paused: true, Task: record.NewTask{Type: "report", Params: []byte("1"), Parent: &record.NewParent{
				Continue: true, Steps: []record.NewStep{
					{Name: "sum", Task: record.NewTask{Type: "part", Params: []byte("2")}},
					{Name: "mail", DependsOn: []uint16{0}, Task: record.NewTask{Type: "mail", Payload: []byte{3}, DelayMS: 5}},
				},
			}}}},
		},
		{command.RunSchedules{Items: []command.ScheduleRun{{Name: "hourly", Version: 38, Slot: 1_780_000_014_000, Next: 1_780_000_015_000}}}},
		{
			// Task 15 has not ended.
			command.RunSchedules{Items: []command.ScheduleRun{{Name: "hourly", Version: 38, Slot: 1_780_000_015_000, Next: 1_780_003_615_000}}},
			// A part of the trail ends with the first event, another one begins with the second.
			command.SetNode{Node: record.NodeRecord{UUID: "0196e0a2-0000-7000-8000-000000000002", NodeID: "n2", Level: 3}},
			command.SetTrail{Bytes: 1 << 20, AgeMS: 60_000},
		},
	}
}

// goldenSteps is the part of goldenLog about steps. It begins with
// id 16 and token 13.
func goldenSteps() [][]command.Command {
	step := func(name string, on ...uint16) record.NewStep {
		return record.NewStep{Name: name, DependsOn: on, Task: record.NewTask{Type: "part", Params: []byte(`"` + name + `"`), MaxAttempts: record.DefaultAttempts}}
	}
	end := func(id uint64) command.Complete {
		return command.Complete{Hold: command.Hold{ID: id, WorkerID: "worker-1"}, Result: []byte("1")}
	}
	return [][]command.Command{
		{command.Submit{Tasks: []record.NewTask{
			{
				Type: "whole", Params: []byte("16"), Key: "whole-16", MaxAttempts: record.DefaultAttempts,
				Parent: &record.NewParent{ByClaim: true, Continue: true, Steps: []record.NewStep{step("fetch"), step("left", 0), step("right", 0), step("merge", 1, 2)}},
			},
			{Type: "whole", Parent: &record.NewParent{Steps: []record.NewStep{step("second", 1), step("first")}}},
			{Type: "whole", Payload: []byte{24}, Parent: &record.NewParent{ByClaim: true, Steps: []record.NewStep{step("only")}}},
		}}},
		{command.ClaimTask{ID: 17, WorkerID: "worker-1"}, command.ClaimTask{ID: 23, WorkerID: "worker-1"}, command.ClaimTask{ID: 25, WorkerID: "worker-1"}}, // tokens 13 to 15
		{end(17), command.Fail{Hold: command.Hold{ID: 23, WorkerID: "worker-1"}, Error: "no route", Permanent: true}, end(25)},
		{
			command.ClaimFinalization{ID: 16, ProcessorID: "processor-1", TimeoutMS: 60_000}, // token 16
			command.ClaimFinalization{ID: 16, ProcessorID: "processor-2", TimeoutMS: 30_000},
			command.Finalize{ID: 24, ProcessorID: "processor-2", Result: []byte(`{"sum":1}`)},
			command.ClaimFinalization{ID: 24, ProcessorID: "processor-1", TimeoutMS: 30_000},
		},
	}
}

// goldenActs is the part of goldenLog of operators' acts.
func goldenActs() [][]command.Command {
	return [][]command.Command{
		{
			// A part of the trail ends with the first event, another one begins with the second.
			command.SetTrail{Bytes: 1 << 20, AgeMS: 600_000},
			command.SetTrail{Bytes: 1 << 20, AgeMS: 60_000},
			command.SetNode{Node: fullNode},
			command.SetType{Type: "video", Set: record.TypePaused | record.TypeMaxClaimed, Settings: record.TypeSettings{MaxClaimed: 3}, By: "deploy"},
			command.Tell{Kind: event.MemberDemoted, By: "deploy", What: "n2"},
			command.Tell{Kind: event.SnapshotTaken, What: "at index 50"},
		},
		{
			command.SetJoinToken{Hash: tokenHash("one"), LifeMS: record.JoinTokenLifeMax, Uses: 2, By: "deploy"},
			command.UseJoinToken{Hash: tokenHash("one"), UUID: fullNode.UUID, NodeID: "n1"},
			command.SetPageSecret{Secret: tokenHash("page")},
			fullDefaults(),
		},
	}
}

// goldenKeys is the part of goldenLog that has keys of types. It begins with id 26.
func goldenKeys() [][]command.Command {
	ofType := func(taskType, key string) record.NewTask {
		return record.NewTask{Type: taskType, Params: []byte("1"), Key: key, KeyOfType: true}
	}
	left := ofType("mail", "order-27")
	left.RetentionMS = record.KeepNone
	return [][]command.Command{
		{command.Submit{Tasks: []record.NewTask{ofType("scan", "order-26"), left, ofType("mail", "order-26")}}, command.Cancel{ID: 27}},
	}
}

// goldenRepeats is the part of goldenLog about a retry after a finalization. It begins with id 29.
func goldenRepeats() [][]command.Command {
	return [][]command.Command{{
		command.Submit{Tasks: []record.NewTask{{Type: "whole", Parent: &record.NewParent{ByClaim: true, Steps: []record.NewStep{
			{Name: "only", Task: record.NewTask{Type: "part", Params: []byte("30"), MaxAttempts: 1}},
		}}}}},
		command.ClaimTask{ID: 30, WorkerID: "worker-1"},
		command.Fail{Hold: command.Hold{ID: 30, WorkerID: "worker-1"}, Error: "no route"},
		command.ClaimFinalization{ID: 29, ProcessorID: "processor-1", TimeoutMS: 30_000},
		command.Finalize{ID: 29, ProcessorID: "processor-1", Failed: true, Error: "no route"},
		command.Retry{ID: 29, AddAttempts: 1},
	}}
}

// goldenZones is the part of goldenLog about time zones.
func goldenZones() [][]command.Command {
	return [][]command.Command{{
		command.Batch{RequestID: "request-4", Ops: []command.Command{
			command.Cancel{ID: 99},
			command.ClaimNext{WorkerID: "worker-1", Types: []string{"scan"}, Limit: 1},
			command.ClaimNext{WorkerID: "worker-2", Types: []string{"scan"}, Limit: 1},
		}},
		command.Tell{Kind: event.SnapshotTaken, What: "at index 58"},
		command.SetSchedule{Schedule: record.Schedule{Name: "nightly-in-vienna", Task: record.NewTask{Type: "mail", Params: []byte("1")}, Cron: "30 2 * * *", Timezone: "Europe/Vienna", NextRunAt: 1_790_000_000_000, NextWall: 1_790_007_200_000}},
	}}
}

// goldenDeadLetters is the part of goldenLog about dead letters. It begins with id 31.
func goldenDeadLetters() [][]command.Command {
	return [][]command.Command{{
		command.SetType{Type: "fragile", Set: record.TypeDeadLetter | record.TypeDelay | record.TypeMaxClaimedPerKey | record.TypeFair, Settings: record.TypeSettings{DeadLetter: "dead", DeadLetterAfter: 1, DelayMS: 1000, MaxClaimedPerKey: 1, Fair: true}},
		command.Submit{Tasks: []record.NewTask{{Type: "fragile", Params: []byte("31"), AtOnce: true}}},
		command.ClaimTask{ID: 31, WorkerID: "worker-1"},
		command.Fail{Hold: command.Hold{ID: 31, WorkerID: "worker-1"}, Error: "no route"},
		command.ClaimTask{ID: 32, WorkerID: "worker-1"},
		command.Complete{Hold: command.Hold{ID: 32, WorkerID: "worker-1"}},
		command.Submit{Tasks: []record.NewTask{{Type: "fragile", Params: []byte("33"), AtOnce: true, ShareKey: "ann", Priority: -1}}},
	}}
}

// goldenTurns is the part of goldenLog after which a share key is behind the clock of its priority.
func goldenTurns() [][]command.Command {
	return [][]command.Command{{
		command.SetType{Type: "shared", Set: record.TypeFair, Settings: record.TypeSettings{Fair: true}},
		command.Submit{Tasks: []record.NewTask{
			{Type: "shared", Params: []byte("1"), ShareKey: "ann", Priority: 5},
			{Type: "shared", Params: []byte("2"), ShareKey: "ann", Priority: 5},
			{Type: "shared", Params: []byte("3"), ShareKey: "ben", Priority: 5},
		}},
		command.ClaimNext{WorkerID: "worker-1", Types: []string{"shared"}, Limit: 1},
	}}
}

// goldenMoves is the part of goldenLog about moves, keys and expiries that came with them, and signals. It begins with id 34.
func goldenMoves() [][]command.Command {
	return [][]command.Command{
		{
			command.SetType{Type: "pool", Set: record.TypePaused, Settings: record.TypeSettings{Paused: true}},
			command.Submit{Tasks: []record.NewTask{
				{Type: "pool", Params: []byte("34")},
				{Type: "whole", Parent: &record.NewParent{Steps: []record.NewStep{{Name: "only", Task: record.NewTask{Type: "pool", Params: []byte("36"), MaxAttempts: 1}}}}},
			}},
			command.MoveTasks{Type: "pool", To: "fragile", Rate: 2},
		},
		{
			command.Tick{}, // it fails at the step
			command.Submit{Tasks: []record.NewTask{
				{Type: "fragile", Params: []byte("38"), Key: "order-38", UniqueMS: 300_000, ExpiresAt: 1_890_000_000_000, ExpiresAgain: true},
				{Type: "fragile", Params: []byte("39"), Key: "order-39", UniqueMS: 300_000, RetentionMS: record.KeepNone},
			}},
			command.Cancel{ID: 39},
			command.ClaimTask{ID: 37, WorkerID: "worker-1"}, // the one that was moved
			command.Complete{Hold: command.Hold{ID: 37, WorkerID: "worker-1"}},
			command.Submit{Tasks: []record.NewTask{{Type: "pool", Params: []byte("40"), SignalMS: 60_000}, {Type: "pool", Params: []byte("41"), SignalMS: 60_000}}},
			command.Signal{ID: 41, Body: []byte(`{"approved":true}`), By: "ann"},
			command.Submit{Tasks: []record.NewTask{{Type: "whole", Parent: &record.NewParent{Steps: []record.NewStep{{Name: "plan", Task: record.NewTask{Type: "planning", Params: []byte("43")}}}}}}},
			command.ClaimTask{ID: 43, WorkerID: "worker-1"},
			command.AddSteps{Hold: command.Hold{ID: 43, WorkerID: "worker-1"}, Steps: []record.AddedStep{
				{NewStep: record.NewStep{Name: "part", Task: record.NewTask{Type: "pool", Params: []byte("44")}}},
				{NewStep: record.NewStep{Name: "whole", DependsOn: []uint16{0}, Task: record.NewTask{Type: "pool", Params: []byte("45")}}, After: []string{"plan"}},
			}},
		},
	}
}

// goldenShares are the commands of goldenLog about settings and buckets of shares.
func goldenShares() []command.Command {
	return []command.Command{
		command.SetShare{Type: "pool", ShareKey: "ben", Settings: record.ShareSettings{Paused: true, MaxClaimed: 2, Weight: 300}, By: "deploy"},
		command.SetShare{Type: "rated", ShareKey: "ann", Settings: record.ShareSettings{RateLimit: 1_500_000}},
		command.Submit{Tasks: []record.NewTask{{Type: "rated", Params: []byte("1"), ShareKey: "ann"}, {Type: "rated", Params: []byte("2"), ShareKey: "ann"}}},
		command.ClaimNext{WorkerID: "worker-2", Types: []string{"rated"}, Limit: 1},
	}
}

// Golden snapshots must restore for ever, and be written again unchanged. None
// is compared with what goldenLog leads to: that may change.
func TestGolden_Snapshots(t *testing.T) {
	t.Parallel()
	addMissing(t, filepath.Join(goldenDir, "snapshot.bin"), snapshotOf(t, goldenMachine(t)))
	addMissing(t, filepath.Join(goldenDir, "snapshot-restored.bin"), snapshotOf(t, restoredMachine(t, goldenMachine(t))))
	for _, want := range []struct {
		name      string
		index     uint64
		counts    [record.StatusCancelled + 1]int64
		requests  int
		types     int
		gone      int
		chunks    int // of the trail
		schedules int
		hash      string
	}{
		{
			"snapshot.bin", 68,
			[...]int64{record.StatusPending: 14, record.StatusScheduled: 1, record.StatusBlocked: 3, record.StatusClaimed: 9, record.StatusRunning: 4, record.StatusCompleted: 8, record.StatusFailed: 5, record.StatusCancelled: 3},
			4, 5, 3, 2, 4,
			"38b023016d53157cb31d3c6199e833ea",
		},
		{
			"snapshot-restored.bin", 7,
			[...]int64{record.StatusPending: 14, record.StatusScheduled: 1, record.StatusBlocked: 3, record.StatusClaimed: 9, record.StatusRunning: 4, record.StatusCompleted: 8, record.StatusFailed: 5, record.StatusCancelled: 3},
			4, 5, 3, 2, 4,
			"5fbb7bc6505e19682a91a40b8e6b4556",
		},
	} {
		golden, err := os.ReadFile(filepath.Join(goldenDir, want.name))
		if err != nil {
			t.Fatal(err)
		}
		m := restore(t, golden)
		if again := snapshotOf(t, m); !bytes.Equal(again, golden) {
			t.Errorf("%s is written again as\n%x, want\n%x", want.name, again, golden)
		}
		if m.counts != want.counts || m.requests.table.Len() != want.requests || len(m.nodes) != 2 || len(m.types.settings) != want.types || m.turns.table.Len() != 2 ||
			m.gone.table.Len() != want.gone || len(m.trail.Chunks()) != want.chunks || len(m.schedules.all) != want.schedules || m.Index() != want.index {
			t.Errorf("%s: counts %v, %d requests, %d nodes, %d types, %d removed, %d parts of the trail, %d schedules at index %d", want.name,
				m.counts, m.requests.table.Len(), len(m.nodes), len(m.types.settings), m.gone.table.Len(), len(m.trail.Chunks()), len(m.schedules.all), m.Index())
		}
		if got := fmt.Sprintf("%x", hashOf(m)); got != want.hash {
			t.Errorf("%s: state hash %s, want %s", want.name, got, want.hash)
		}
	}
}

// goldenChain is the chain of the golden snapshot that has one.
const goldenChain = 0xfedcba9876543210

// goldenMachine is where goldenLog leads to.
func goldenMachine(t *testing.T) *Machine {
	t.Helper()
	m := New()
	applyLog(t, m, goldenLog())
	m.SetChain(goldenChain)
	return m
}

// Golden snapshots have each field of each record at least once.
func TestGolden_SnapshotsHaveEveryField(t *testing.T) {
	t.Parallel()
	s, seen := parseSchema(t), map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range splitSnapshot(golden) {
			for _, packed := range c.records {
				if err := s.walk(recordNames[c.kind], packed, seen); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, name := range recordNames {
		for num, field := range s.messages[name].fields {
			isPart := name == "TrailRecord" && field.name == "sub" // of an entry with more events than a record holds
			if !seen[fmt.Sprintf("%s.%d", name, num)] && !isPart {
				t.Errorf("%s.%s is in no golden snapshot", name, field.name)
			}
		}
	}
}
