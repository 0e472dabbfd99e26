package fsm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/fsm/table"
)

// What VerifySnapshot lets through is whole, and it says about how much memory the
// state takes: never much less.
func TestVerifySnapshot(t *testing.T) {
	t.Parallel()
	for seed := range seeds(8) {
		m := New()
		applyLog(t, m, randomLog(seed, 400))
		got, err := VerifySnapshot(bytes.NewReader(snapshotOf(t, m)))
		if err != nil {
			t.Fatal(err)
		}
		restored, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m)))
		if err != nil {
			t.Fatal(err)
		}
		want := restored.Bytes()
		t.Logf("%d bytes, want about %d", got, want)
		if got < want*95/100 || got > want*130/100 {
			t.Errorf("seed %d: %d bytes, want about %d", seed, got, want)
		}
	}
}

func TestVerifySnapshot_FindsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	saved := snapshotOf(t, smallMachine(t))
	for i := range saved {
		bad := bytes.Clone(saved)
		bad[i] ^= 1
		if _, err := VerifySnapshot(bytes.NewReader(bad)); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownCommand) {
			t.Fatalf("byte %d of %d is wrong: error %v", i, len(saved), err)
		}
		if _, err := VerifySnapshot(bytes.NewReader(saved[:i])); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: error %v", i, len(saved), err)
		}
	}
	chunks := splitSnapshot(saved)
	for _, c := range chunks {
		for _, packed := range c.records {
			for i := range packed {
				packed[i] ^= 1
				if _, err := VerifySnapshot(bytes.NewReader(joinSnapshot(chunks))); err == nil {
					t.Fatalf("byte %d of a %v was wrong when its checksum was made, and it was not found", i, c.kind)
				}
				packed[i] ^= 1
			}
		}
	}
	chunks[1].records = chunks[1].records[1:]
	if _, err := VerifySnapshot(bytes.NewReader(joinSnapshot(chunks))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a task is missing: error %v", err)
	}
}

// Of what was restored, the tasks of the last pages are kept as they are, as those
// that came one by one are, and the others rest.
func TestReadSnapshot_RestsInPages(t *testing.T) {
	t.Parallel()
	const tasks = (record.BusyPages + 24) * table.PageSize
	m := New()
	submit := command.Submit{Tasks: make([]record.NewTask, tasks)}
	for i := range submit.Tasks {
		submit.Tasks[i] = record.NewTask{Type: "mail", Params: []byte("1")}
	}
	mustApplyTo(t, m, testEntry{Index: 1, Stamp: record.Stamp{U: 1, T: 1}, Commands: []command.Command{command.SetLevel{Level: record.FeatureLevel}, submit}})
	restored, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, restored)
	checkResting(t, restored, tasks)
}
