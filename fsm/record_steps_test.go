package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/trail"
)

// stepsRecords are a parent with two steps, of which the second waits for the
// first, which has completed, as a snapshot may have them.
func stepsRecords() (parent, first, second Task) {
	plan := &Plan{Steps: []PlannedStep{{Name: "a"}, {Name: "b", DependsOn: []uint16{0}}}, ByClaim: true}
	parent = Task{ID: 1, Type: "whole", Status: StatusRunning, Options: &Options{Parent: &Parent{Plan: plan, Finalization: &Finalization{
		ProcessorID: "p", Token: 7, TimeoutMS: 1000, EndU: 1000,
		Attempts: []FinalizationAttempt{{ProcessorID: "p", Outcome: FinalizationClaimed, Holder: "p", State: StateWaitingForSteps}},
	}}}}
	step := &Options{Step: &Step{ParentID: 1}}
	first = Task{ID: 2, Type: "part", Status: StatusCompleted, Options: step}
	second = Task{ID: 3, Type: "part", Status: StatusPending, Options: step}
	return parent, first, second
}

// readTasks reads a snapshot of the task records. Ids and tokens up to 9 were given
// out.
func readTasks(records ...[]byte) (*Machine, error) {
	h := header{Index: 1, Level: FeatureLevel, NextID: 10, NextToken: 10, NextRequest: 10}
	return ReadSnapshot(bytes.NewReader(joinSnapshot(seal([]rawChunk{
		{recordHeader, [][]byte{appendHeaderRecord(nil, &h, &trail.Header{}, recordCounts{})}}, {recordTask, records}, {recordEnd, [][]byte{nil}},
	}))))
}

func TestReadSnapshot_RefusesWrongSteps(t *testing.T) {
	t.Parallel()
	finalization := func(p *Task) *Finalization { return p.Options.Parent.Finalization }
	steps := func(p *Task) []PlannedStep { return p.Options.Parent.Plan.Steps }
	tests := []struct {
		name   string
		change func(p, a, b *Task)
		want   error // nil: it is read
		names  string
	}{
		{"as they can be", func(_, _, _ *Task) {}, nil, ""},
		{"nobody has claimed it", func(p, _, _ *Task) { p.Options.Parent.Finalization = nil }, nil, ""},
		{"only attempts", func(p, _, _ *Task) { *finalization(p) = Finalization{Attempts: finalization(p).Attempts} }, nil, ""},
		{"the second is open", func(_, a, b *Task) { a.Status, b.Status = StatusPending, StatusBlocked }, nil, ""},
		{"the second was cancelled", func(_, a, b *Task) { a.Status, b.Status = StatusFailed, StatusCancelled }, nil, ""},
		{"a parent that is a step", func(p, _, _ *Task) { p.Options.Step = &Step{ParentID: 9} }, ErrCorrupt, "a parent and a step"},
		{"running without steps", func(p, _, _ *Task) { p.Options = nil }, ErrCorrupt, "running without steps"},
		{"a step that runs", func(_, _, b *Task) { b.Status = StatusRunning }, ErrCorrupt, "running without steps"},
		{"blocked, and no step", func(_, _, b *Task) { b.Status, b.Options = StatusBlocked, nil }, ErrCorrupt, "blocked and no step"},
		{"a parent that is pending", func(p, _, _ *Task) { p.Status = StatusPending }, ErrCorrupt, "neither runs"},
		{"a parent that is claimed", func(p, _, _ *Task) { p.Status, p.Token = StatusClaimed, 1 }, ErrCorrupt, "neither runs"},
		{"steps past all ids", func(p, _, _ *Task) {
			p.Options.Parent.Plan.Steps = append(steps(p), slices.Repeat([]PlannedStep{{Name: "x"}}, 7)...)
		}, ErrCorrupt, "never given out"},
		{"a step that is not there", func(p, _, _ *Task) {
			p.Options.Parent.Plan.Steps = append(steps(p), PlannedStep{Name: "c"})
		}, ErrCorrupt, "task 1"},
		{"a step of another", func(_, _, b *Task) { b.Options = &Options{Step: &Step{ParentID: 2}} }, ErrCorrupt, "task 1"},
		{"no step", func(_, _, b *Task) { b.Options = nil }, ErrCorrupt, "task 1"},
		{"a step without a parent", func(p, _, _ *Task) { p.Options, p.Status = nil, StatusPending }, ErrCorrupt, "task 2"},
		{"a step that has no place", func(_, _, b *Task) { b.ID = 4 }, ErrCorrupt, "task 1"},
		{"ended before a step", func(p, _, _ *Task) { p.Status, *finalization(p) = StatusCompleted, Finalization{} }, ErrCorrupt, "task 1"},
		{"blocked, and waits for none", func(_, _, b *Task) { b.Status = StatusBlocked }, ErrCorrupt, "task 1"},
		{"pending, and waits", func(_, a, _ *Task) { a.Status = StatusPending }, ErrCorrupt, "task 1"},
		{"no steps", func(p, _, _ *Task) { p.Options.Parent.Plan.Steps = nil }, ErrCorrupt, "without steps"},
		{"too many steps", func(p, _, _ *Task) {
			p.Options.Parent.Plan.Steps = slices.Repeat([]PlannedStep{{Name: "x"}}, StepsMax+1)
		}, ErrCorrupt, "more than 1000"},
		{"a step that depends on itself", func(p, _, _ *Task) { steps(p)[1].DependsOn = []uint16{1} }, ErrCorrupt, "itself"},
		{"a step that depends on none", func(p, _, _ *Task) { steps(p)[1].DependsOn = []uint16{2} }, ErrCorrupt, "not there"},
		{"steps in a circle", func(p, a, b *Task) {
			steps(p)[0].DependsOn = []uint16{1}
			a.Status, b.Status = StatusBlocked, StatusBlocked
		}, ErrCorrupt, "task 1"},
		{"a claim without a token", func(p, _, _ *Task) { finalization(p).Token = 0 }, ErrCorrupt, "by half"},
		{"a token without a claim", func(p, _, _ *Task) { finalization(p).ProcessorID = "" }, ErrCorrupt, "by half"},
		{"a length without a claim", func(p, _, _ *Task) { *finalization(p) = Finalization{TimeoutMS: 1} }, ErrCorrupt, "by half"},
		{"an end without a claim", func(p, _, _ *Task) { *finalization(p) = Finalization{EndU: 1} }, ErrCorrupt, "by half"},
		{"a claim of an ended parent", func(p, _, b *Task) { p.Status, b.Status = StatusFailed, StatusFailed }, ErrCorrupt, "ended and its"},
		{"a token never given out", func(p, _, _ *Task) { finalization(p).Token = 10 }, ErrCorrupt, "never given out"},
		{"too many attempts", func(p, _, _ *Task) {
			finalization(p).Attempts = slices.Repeat(finalization(p).Attempts, finalizationAttemptsMax+1)
		}, ErrCorrupt, "more than 100"},
		{"an attempt without an outcome", func(p, _, _ *Task) { finalization(p).Attempts[0].Outcome = 0 }, ErrCorrupt, "no outcome"},
		{"an attempt that found no task", func(p, _, _ *Task) { finalization(p).Attempts[0].State = StateNotFound }, ErrCorrupt, "no state"},
		{"an outcome of the future", func(p, _, _ *Task) { finalization(p).Attempts[0].Outcome = FinalizationNotFound }, ErrUnknownCommand, "value 6"},
		{"a state of the future", func(p, _, _ *Task) { finalization(p).Attempts[0].State = plainState }, ErrUnknownCommand, "value 16"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, a, b := stepsRecords()
			test.change(&p, &a, &b)
			m, err := readTasks(appendTaskRecord(nil, &p), appendTaskRecord(nil, &a), appendTaskRecord(nil, &b))
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
		b := appendTaskRecord(nil, &Task{ID: 1, Type: "whole", Status: StatusRunning})
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), fields)
	}
	for _, test := range []struct {
		name   string
		record []byte
		want   error
		names  string
	}{
		{"a finalization without a plan", parent(38, 8, 1), ErrCorrupt, "without steps"},
		{"an empty plan", parent(37), ErrCorrupt, "empty"},
		{"a plan of flags alone", parent(37, 16, 1), ErrCorrupt, "without steps"},
		{"a field of the future in a plan", parent(37, 10, 0, 32, 1), ErrUnknownCommand, "field 4"},
		{"a field of the future in a step", parent(37, 10, 2, 24, 1), ErrUnknownCommand, "field 3"},
		{"an empty name", parent(37, 10, 2, 10, 0), ErrCorrupt, "empty"},
		{"dependencies out of order", parent(37, 10, 0, 10, 0, 10, 4, 16, 1, 16, 0), ErrCorrupt, "ascend"},
		{"a dependency past every step", parent(37, 10, 3, 16, 0xe8, 7), ErrCorrupt, "no step has"},
		{"a parent's id of 0", append(appendTaskRecord(nil, &Task{ID: 1, Type: "part", Status: StatusPending}), 0xa0, 2, 0), ErrCorrupt, "zero"},
	} {
		if m, err := readTasks(test.record); m != nil || !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.names) {
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
		record := protowire.AppendTag(appendTaskRecord(nil, &p), 38, protowire.BytesType)
		record = protowire.AppendBytes(record, test.fields)
		m, err := readTasks(record, appendTaskRecord(nil, &a), appendTaskRecord(nil, &b))
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
	records := [][]byte{appendTaskRecord(nil, &p), appendTaskRecord(nil, &a), appendTaskRecord(nil, &b)}
	for r, record := range records {
		for i := range record {
			for flip := 1; flip < 256; flip <<= 1 {
				bad := slices.Clone(records)
				bad[r] = bytes.Clone(record)
				bad[r][i] ^= byte(flip)
				m, err := readTasks(bad...)
				if err != nil {
					refused++
					continue
				}
				read++
				for n, c := range []Command{
					ClaimFinalization{ID: 1, ProcessorID: "q", TimeoutMS: 1000},
					Finalize{ID: 1, ProcessorID: "q"},
					ClaimNext{WorkerID: "w", Limit: 5},
					Complete{Hold: Hold{ID: 3, WorkerID: "w"}},
					Cancel{ID: 1},
					Retry{ID: 1},
					Tick{},
				} {
					mustApplyTo(t, m, testEntry{Index: uint64(2 + n), Commands: []Command{c}})
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
