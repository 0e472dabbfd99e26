package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// stepsRecords returns the saved records of a parent with two steps; the second waits for
// the first, which has completed.
func stepsRecords() (parent, first, second record.Task) {
	plan := &record.Plan{Steps: []record.PlannedStep{{Name: "a"}, {Name: "b", DependsOn: []uint16{0}}}, ByClaim: true}
	parent = record.Task{ID: 1, Type: "whole", Status: record.StatusRunning, Options: &record.Options{Parent: &record.Parent{Plan: plan, Finalization: &record.Finalization{
		ProcessorID: "p", Token: 7, TimeoutMS: 1000, EndU: 1000,
		Attempts: []record.FinalizationAttempt{{ProcessorID: "p", Outcome: record.FinalizationClaimed, Holder: "p", State: record.StateWaitingForSteps}},
	}}}}
	step := &record.Options{Step: &record.Step{ParentID: 1}}
	first = record.Task{ID: 2, Type: "part", Status: record.StatusCompleted, Options: step}
	second = record.Task{ID: 3, Type: "part", Status: record.StatusPending, Options: step}
	return parent, first, second
}

// readTasks reads a snapshot of the task records. Ids and tokens up to 9 were given
// out.
func readTasks(records ...[]byte) (*Machine, error) {
	h := record.Header{Index: 1, Level: record.FeatureLevel, NextID: 10, NextToken: 10, NextRequest: 10}
	return ReadSnapshot(bytes.NewReader(joinSnapshot(seal([]rawChunk{
		{record.KindHeader, [][]byte{record.AppendHeader(nil, &h, &event.Header{}, record.Counts{})}}, {record.KindTask, records}, {record.KindEnd, [][]byte{nil}},
	}))))
}

func TestReadSnapshot_RefusesWrongSteps(t *testing.T) {
	t.Parallel()
	finalization := func(p *record.Task) *record.Finalization { return p.Options.Parent.Finalization }
	steps := func(p *record.Task) []record.PlannedStep { return p.Options.Parent.Plan.Steps }
	awaits := func(b *record.Task, ms, until int64) {
		b.Status, b.Options = record.StatusBlocked, &record.Options{Step: b.Options.Step, SignalMS: ms, SignalUntil: until}
	}
	tests := []struct {
		name   string
		change func(p, a, b *record.Task)
		want   error // nil: it is read
		names  string
	}{
		{"as they can be", func(_, _, _ *record.Task) {}, nil, ""},
		{"nobody has claimed it", func(p, _, _ *record.Task) { p.Options.Parent.Finalization = nil }, nil, ""},
		{"only attempts", func(p, _, _ *record.Task) { *finalization(p) = record.Finalization{Attempts: finalization(p).Attempts} }, nil, ""},
		{"the second is open", func(_, a, b *record.Task) { a.Status, b.Status = record.StatusPending, record.StatusBlocked }, nil, ""},
		{"the second was cancelled", func(_, a, b *record.Task) { a.Status, b.Status = record.StatusFailed, record.StatusCancelled }, nil, ""},
		{"a parent that is a step", func(p, _, _ *record.Task) { p.Options.Step = &record.Step{ParentID: 9} }, ErrCorrupt, "a parent and a step"},
		{"running without steps", func(p, _, _ *record.Task) { p.Options = nil }, ErrCorrupt, "running without steps"},
		{"a step that runs", func(_, _, b *record.Task) { b.Status = record.StatusRunning }, ErrCorrupt, "running without steps"},
		{"blocked, and no step", func(_, _, b *record.Task) { b.Status, b.Options = record.StatusBlocked, nil }, ErrCorrupt, "blocked and no step"},
		{"a parent that is pending", func(p, _, _ *record.Task) { p.Status = record.StatusPending }, ErrCorrupt, "neither runs"},
		{"a parent that is claimed", func(p, _, _ *record.Task) { p.Status, p.Token = record.StatusClaimed, 1 }, ErrCorrupt, "neither runs"},
		{"steps past all ids", func(p, _, _ *record.Task) {
			p.Options.Parent.Plan.Steps = append(steps(p), slices.Repeat([]record.PlannedStep{{Name: "x"}}, 7)...)
		}, ErrCorrupt, "never given out"},
		{"the second was added", func(p, _, b *record.Task) { p.Options.Parent.Plan.Added, b.ID = []uint64{5}, 5 }, nil, ""},
		{"one was added that is not there", func(p, _, _ *record.Task) { p.Options.Parent.Plan.Added = []uint64{5} }, ErrCorrupt, "task 1"},
		{"one was added past all ids", func(p, _, _ *record.Task) { p.Options.Parent.Plan.Added = []uint64{10} }, ErrCorrupt, "never given out"},
		{"one was added before it was", func(p, _, b *record.Task) { p.Options.Parent.Plan.Added = []uint64{2} }, ErrCorrupt, "ids of before"},
		{"a step that is not there", func(p, _, _ *record.Task) {
			p.Options.Parent.Plan.Steps = append(steps(p), record.PlannedStep{Name: "c"})
		}, ErrCorrupt, "task 1"},
		{"a step of another", func(_, _, b *record.Task) { b.Options = &record.Options{Step: &record.Step{ParentID: 2}} }, ErrCorrupt, "task 1"},
		{"no step", func(_, _, b *record.Task) { b.Options = nil }, ErrCorrupt, "task 1"},
		{"a step without a parent", func(p, _, _ *record.Task) { p.Options, p.Status = nil, record.StatusPending }, ErrCorrupt, "task 2"},
		{"a step that has no place", func(_, _, b *record.Task) { b.ID = 4 }, ErrCorrupt, "task 1"},
		{"ended before a step", func(p, _, _ *record.Task) { p.Status, *finalization(p) = record.StatusCompleted, record.Finalization{} }, ErrCorrupt, "task 1"},
		{"blocked, and waits for none", func(_, _, b *record.Task) { b.Status = record.StatusBlocked }, ErrCorrupt, "task 1"},
		{"blocked by a signal alone", func(_, _, b *record.Task) { awaits(b, 100, 500) }, nil, ""},
		{"blocked by a signal alone, without an end", func(_, _, b *record.Task) { awaits(b, 100, 0) }, ErrCorrupt, "task 1"},
		{"blocked by others, and a signal has an end", func(_, a, b *record.Task) {
			a.Status = record.StatusPending
			awaits(b, 100, 500)
		}, ErrCorrupt, "task 1"},
		{"pending, and waits", func(_, a, _ *record.Task) { a.Status = record.StatusPending }, ErrCorrupt, "task 1"},
		{"no steps", func(p, _, _ *record.Task) { p.Options.Parent.Plan.Steps = nil }, ErrCorrupt, "without steps"},
		{"too many steps", func(p, _, _ *record.Task) {
			p.Options.Parent.Plan.Steps = slices.Repeat([]record.PlannedStep{{Name: "x"}}, record.StepsMax+1)
		}, ErrCorrupt, "more than 1000"},
		{"a step that depends on itself", func(p, _, _ *record.Task) { steps(p)[1].DependsOn = []uint16{1} }, ErrCorrupt, "itself"},
		{"a step that depends on none", func(p, _, _ *record.Task) { steps(p)[1].DependsOn = []uint16{2} }, ErrCorrupt, "not there"},
		{"steps in a circle", func(p, a, b *record.Task) {
			steps(p)[0].DependsOn = []uint16{1}
			a.Status, b.Status = record.StatusBlocked, record.StatusBlocked
		}, ErrCorrupt, "task 1"},
		{"a claim without a token", func(p, _, _ *record.Task) { finalization(p).Token = 0 }, ErrCorrupt, "by half"},
		{"a token without a claim", func(p, _, _ *record.Task) { finalization(p).ProcessorID = "" }, ErrCorrupt, "by half"},
		{"a length without a claim", func(p, _, _ *record.Task) { *finalization(p) = record.Finalization{TimeoutMS: 1} }, ErrCorrupt, "by half"},
		{"an end without a claim", func(p, _, _ *record.Task) { *finalization(p) = record.Finalization{EndU: 1} }, ErrCorrupt, "by half"},
		{"a claim of an ended parent", func(p, _, b *record.Task) { p.Status, b.Status = record.StatusFailed, record.StatusFailed }, ErrCorrupt, "ended and its"},
		{"a token never given out", func(p, _, _ *record.Task) { finalization(p).Token = 10 }, ErrCorrupt, "never given out"},
		{"too many attempts", func(p, _, _ *record.Task) {
			finalization(p).Attempts = slices.Repeat(finalization(p).Attempts, record.FinalizationAttemptsMax+1)
		}, ErrCorrupt, "more than 100"},
		{"an attempt without an outcome", func(p, _, _ *record.Task) { finalization(p).Attempts[0].Outcome = 0 }, ErrCorrupt, "no outcome"},
		{"an attempt that found no task", func(p, _, _ *record.Task) { finalization(p).Attempts[0].State = record.StateNotFound }, ErrCorrupt, "no state"},
		{"an outcome of the future", func(p, _, _ *record.Task) { finalization(p).Attempts[0].Outcome = record.FinalizationNotFound }, ErrUnknownCommand, "value 6"},
		{"a state of the future", func(p, _, _ *record.Task) { finalization(p).Attempts[0].State = record.PlainState }, ErrUnknownCommand, "value 16"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, a, b := stepsRecords()
			test.change(&p, &a, &b)
			m, err := readTasks(record.AppendTask(nil, &p), record.AppendTask(nil, &a), record.AppendTask(nil, &b))
			if test.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				checkRead(t, snapshotOf(t, m))
				return
			}
			if m != nil || !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.names) {
				t.Fatalf("machine %v, error %v; want %v that names %q", m != nil, err, test.want, test.names)
			}
		})
	}
}

// TestReadSnapshot_RefusesStepsWrittenWrong ensures that a plan and a finalization
// have one form.
func TestReadSnapshot_RefusesStepsWrittenWrong(t *testing.T) {
	t.Parallel()
	parent := func(num protowire.Number, fields ...byte) []byte {
		b := record.AppendTask(nil, &record.Task{ID: 1, Type: "whole", Status: record.StatusRunning})
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), fields)
	}
	for _, test := range []struct {
		name   string
		packed []byte
		want   error
		names  string
	}{
		{"a finalization without a plan", parent(38, 8, 1), ErrCorrupt, "without steps"},
		{"an empty plan", parent(37), ErrCorrupt, "empty"},
		{"a plan of flags alone", parent(37, 16, 1), ErrCorrupt, "without steps"},
		{"a field of the future in a plan", parent(37, 10, 0, 40, 1), ErrUnknownCommand, "field 5"},
		{"no step that was submitted", parent(37, 10, 0, 32, 9), ErrCorrupt, "without submitted steps"},
		{"steps added out of order", parent(37, 10, 0, 10, 0, 10, 0, 32, 9, 32, 9), ErrCorrupt, "out of order"},
		{"a field of the future in a step", parent(37, 10, 2, 24, 1), ErrUnknownCommand, "field 3"},
		{"an empty name", parent(37, 10, 2, 10, 0), ErrCorrupt, "empty"},
		{"dependencies out of order", parent(37, 10, 0, 10, 0, 10, 4, 16, 1, 16, 0), ErrCorrupt, "ascend"},
		{"a dependency past every step", parent(37, 10, 3, 16, 0xe8, 7), ErrCorrupt, "no step has"},
		{"a parent's id of 0", append(record.AppendTask(nil, &record.Task{ID: 1, Type: "part", Status: record.StatusPending}), 0xa0, 2, 0), ErrCorrupt, "zero"},
	} {
		if m, err := readTasks(test.packed); m != nil || !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.names) {
			t.Errorf("%s: machine %v, error %v; want %v that names %q", test.name, m != nil, err, test.want, test.names)
		}
	}
	p, a, b := stepsRecords()
	for _, test := range []struct {
		name   string
		fields []byte
		want   error
		names  string
	}{
		{"an empty finalization", nil, ErrCorrupt, "empty"},
		{"a field of the future in a finalization", []byte{48, 1}, ErrUnknownCommand, "field 6"},
		{"a field of the future in an attempt", []byte{42, 2, 48, 1}, ErrUnknownCommand, "field 6"},
		{"a field twice", []byte{16, 1, 16, 1}, ErrCorrupt, "twice"},
	} {
		p.Options.Parent.Finalization = nil
		packed := protowire.AppendTag(record.AppendTask(nil, &p), 38, protowire.BytesType)
		packed = protowire.AppendBytes(packed, test.fields)
		m, err := readTasks(packed, record.AppendTask(nil, &a), record.AppendTask(nil, &b))
		if m != nil || !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.names) {
			t.Errorf("%s: machine %v, error %v; want %v that names %q", test.name, m != nil, err, test.want, test.names)
		}
	}
}

// TestReadSnapshot_WrongStepsLeadNowhere puts wrong bytes into the records of
// parents and steps, with the checksums right: they are refused, or it is a state
// all the same, which goes on.
func TestReadSnapshot_WrongStepsLeadNowhere(t *testing.T) {
	t.Parallel()
	refused, read := 0, 0
	p, a, b := stepsRecords()
	records := [][]byte{record.AppendTask(nil, &p), record.AppendTask(nil, &a), record.AppendTask(nil, &b)}
	for r, packed := range records {
		for i := range packed {
			for flip := 1; flip < 256; flip <<= 1 {
				bad := slices.Clone(records)
				bad[r] = bytes.Clone(packed)
				bad[r][i] ^= byte(flip)
				m, err := readTasks(bad...)
				if err != nil {
					refused++
					continue
				}
				read++
				for n, c := range []command.Command{
					command.ClaimFinalization{ID: 1, ProcessorID: "q", TimeoutMS: 1000},
					command.Finalize{ID: 1, ProcessorID: "q"},
					command.ClaimNext{WorkerID: "w", Limit: 5},
					command.Complete{Hold: command.Hold{ID: 3, WorkerID: "w"}},
					command.Cancel{ID: 1},
					command.Retry{ID: 1},
					command.Tick{},
				} {
					mustApplyTo(t, m, testEntry{Index: uint64(2 + n), Commands: []command.Command{c}})
				}
				if _, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m))); err != nil {
					t.Fatalf("byte %d of record %d, bits %#x: what came of it cannot be read: %v", i, r, flip, err)
				}
			}
		}
	}
	if refused == 0 || read == 0 {
		t.Errorf("%d were refused, %d read", refused, read)
	}
}
