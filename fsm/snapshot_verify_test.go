package fsm

import (
	"bytes"
	"errors"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// A snapshot that passes VerifySnapshot is whole, and the estimate of the state's
// memory is never much too low.
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
		// It counts a group for each of its tasks, and a page of last events for each page of tasks.
		most := want*130/100 + int64(restored.tasks.Len()+restored.tasks.Gaps())/record.PageSize*event.LastPageBytes
		for _, task := range restored.tasks.All() {
			if group := record.GroupOf(task); group != "" {
				most += record.BytesOfGroup(group)
			}
		}
		t.Logf("%d bytes, want about %d", got, want)
		if got < want*95/100 || got > most {
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
		if _, err := VerifySnapshot(bytes.NewReader(bad)); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownCommand) && !errors.Is(err, ErrDevelopment) {
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

// After a restore the tasks of the last pages are kept decoded, like tasks that were
// just submitted, and the others rest.
func TestReadSnapshot_RestsInPages(t *testing.T) {
	t.Parallel()
	const tasks = (record.BusyPages + 24) * record.PageSize
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
