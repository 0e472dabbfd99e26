package fsm

import (
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// placesT is the calendar of a cluster that was made after that of smallMachine.
const placesT = 1_790_000_000_000

// newPlaced is newRestorer for a cluster that a leader created the given milliseconds after
// placesT, so its places do not begin at 1.
func newPlaced(t *testing.T, after int64) *restorer {
	r := &restorer{t: t, m: New(), stamp: record.Stamp{U: 5000, T: placesT + after}}
	r.apply(command.SetLevel{Level: record.FeatureLevel, Place: FirstPlace(r.stamp.T)})
	r.apply(command.SetNode{Node: record.NodeRecord{UUID: "u", NodeID: "n9"}})
	return r
}

// restore restores the backup, and tells of it.
func (r *restorer) restore(backup []byte) {
	r.t.Helper()
	saved, err := readBackupOf(backup)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := saved.Graft(r.m.Ground())
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Release()
	state := written(r.t, s)
	r.want(command.Tell{Kind: event.RestoreBegun, What: "a backup"}, "")
	r.beginOf(len(state))
	r.send(state, 4096)
	r.want(command.RestoreEnd{Begin: r.begin}, "")
	r.want(command.Tell{Kind: event.Restored, What: "a backup"}, "")
}

func (r *restorer) submit() {
	r.t.Helper()
	r.want(command.Submit{Tasks: []record.NewTask{{Type: "mail", Params: []byte("1"), MaxAttempts: record.DefaultAttempts}}}, "")
}

// kindsBehind returns the events for a reader at the place, up to the end of the trail.
func kindsBehind(t *testing.T, m *Machine, at event.Pos) (kinds []string) {
	t.Helper()
	for {
		page := m.Events(event.Query{After: at, Limit: 2})
		if page.Gone {
			t.Fatalf("what is behind %v is gone", at)
		}
		for _, e := range page.Events {
			if e.Compare(at) <= 0 {
				t.Fatalf("%v is told behind %v", e.Pos, at)
			}
			at, kinds = e.Pos, append(kinds, e.Kind.String())
		}
		if !page.More {
			return kinds
		}
	}
}

// Readers of a lost cluster may have seen places far beyond its last backup, and readers of
// the new one its later places. Both must see everything from the restore on, even after
// several restores.
func TestRestore_readersGoOn(t *testing.T) {
	t.Parallel()
	lost := newPlaced(t, 0)
	lost.submit()
	backup := backupOf(t, lost.m)
	for round := range int64(3) {
		for range 400 {
			lost.submit() // seen, and lost
		}
		seen := lost.m.NewestEvent()
		lost.want(command.SetSchedule{Schedule: record.Schedule{Name: "s", EveryMS: 1000, Task: record.NewTask{Type: "mail", Params: []byte("1")}}}, "")
		version := lost.m.Schedules()[0].Version

		r := newPlaced(t, 1000*(round+1))
		young := r.m.NewestEvent()
		r.restore(backup)
		r.submit()
		r.want(command.SetSchedule{Schedule: record.Schedule{Name: "s", EveryMS: 1000, Task: record.NewTask{Type: "mail", Params: []byte("1")}}}, "")
		if round == 0 { // whose own places came before
			want := []string{"restore_begun", "restored", "submitted", "schedule_set"}
			if got := kindsBehind(t, r.m, young); !slices.Equal(got, want) {
				t.Errorf("a reader of the new cluster is told %v, want %v", got, want)
			}
		}
		want := []string{"restored", "submitted", "schedule_set"}
		if got := kindsBehind(t, r.m, seen); len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
			t.Errorf("round %d: a reader of the lost cluster is told %v, want %v at the end", round, got, want)
		}
		if got := r.m.Schedules()[0].Version; got <= version {
			t.Errorf("round %d: a schedule has version %d, one of the lost cluster had %d", round, got, version)
		}
		if got := restore(t, snapshotOf(t, r.m)); hashOf(got) != hashOf(r.m) {
			t.Errorf("round %d: its snapshot is read as another state", round)
		}
		lost = r
	}
}

// A cluster's own events of tasks are about other tasks than the backup's of the same ids.
func TestRestore_leavesTheClustersTasks(t *testing.T) {
	t.Parallel()
	lost := newPlaced(t, 0)
	lost.submit()
	r := newPlaced(t, 1000)
	r.submit()
	r.want(command.Cancel{ID: 1}, "")
	r.want(command.Delete{ID: 1}, "")
	r.stamp.U += 1 << 40 // what is remembered of it is forgotten
	r.want(command.Tick{}, "")
	if left := r.m.Contents(); left != "" {
		t.Fatalf("the cluster still holds %s", left)
	}
	r.restore(backupOf(t, lost.m))
	if events := r.m.TaskEvents(1); len(events) != 1 || events[0].Kind != event.Submitted {
		t.Errorf("of task 1 is told %+v, want the backup's", events)
	}
	mustCheck(t, r.m)
}

// The entry that raises the level moves places on, and never back.
func TestSetLevel_place(t *testing.T) {
	t.Parallel()
	r := &restorer{t: t, m: New(), stamp: record.Stamp{U: 1, T: placesT}}
	r.apply(command.SetLevel{Level: 1})
	r.submit()
	r.apply(command.SetLevel{Level: 2, Place: 5000})
	if got, want := r.m.NewestEvent(), (event.Pos{Index: 5000}); got != want {
		t.Errorf("the level is raised at %v, want %v", got, want)
	}
	r.submit()
	if got, want := r.m.NewestEvent(), (event.Pos{Index: 5001}); got != want {
		t.Errorf("the next event is at %v, want %v", got, want)
	}
	r.apply(command.SetLevel{Level: 2, Place: 9000})
	r.submit()
	if got, want := r.m.NewestEvent(), (event.Pos{Index: 5003}); got != want {
		t.Errorf("after a level that it has the next event is at %v, want %v", got, want)
	}
}
