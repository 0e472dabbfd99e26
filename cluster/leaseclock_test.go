package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// A leadership's U continues from the latest valid hint: those that this node and the
// others have received from the leader that stamped the newest entry.
func TestClocks_startFromHints(t *testing.T) {
	t.Parallel()
	const stateU, newestTerm, term = 1000, 7, 9
	for _, test := range []struct {
		name     string
		own      lease.Hint
		others   []lease.Hint // of n2 and n3; zero term: no answer
		notInLog bool         // the newest entry
		want     int64
	}{
		{"nobody was told", lease.Hint{}, []lease.Hint{{}, {}}, false, stateU},
		{"this node was", lease.Hint{Term: 7, U: 1200}, []lease.Hint{{}, {}}, false, 1200},
		{"another was", lease.Hint{}, []lease.Hint{{Term: 7, U: 1300}, {}}, false, 1300},
		{"by a leader that another one followed", lease.Hint{Term: 6, U: 9000}, []lease.Hint{{Term: 6, U: 9000}, {}}, false, stateU},
		{"in this term", lease.Hint{Term: 9, U: 1400}, []lease.Hint{{Term: 7, U: 1200}, {}}, false, 1400},
		{"the log begins behind the newest entry", lease.Hint{Term: 7, U: 1200}, []lease.Hint{{}, {}}, true, stateU},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			logs := raft.NewInmemStore()
			if !test.notInLog {
				if err := logs.StoreLog(&raft.Log{Index: 3, Term: newestTerm, Type: raft.LogCommand}); err != nil {
					t.Fatal(err)
				}
			}
			clock := &handClock{mono: time.Hour}
			n, err := newNode(Config{NodeID: "n1"}.withDefaults(), Parts{UUID: "n1", Logs: logs, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			n.fsm.ApplyEntry(3, newestTerm, command.AppendEntry(nil, fsm.Stamp{U: stateU}, command.Tick{}))
			n.statuses.hints.Note(test.own)
			n.call = func(_ context.Context, addr, name string, _ []byte) ([]byte, error) {
				hint := test.others[addr[1]-'2']
				if hint.Term == 0 || name != callStatus {
					return nil, errors.New("it is down")
				}
				return json.Marshal(peerStatus{Record: fsm.NodeRecord{UUID: addr}, Hint: hint})
			}
			l := &leadership{node: n.role, term: term, wallClocks: clocks.NewWalls(n.logger), ctx: t.Context()}
			others := []raft.Server{{ID: "n2", Address: "n2"}, {ID: "n3", Address: "n3"}}
			n.clocks.start(l, []raft.ServerID{"n1", "n2", "n3"}, others)
			if got := l.clock.Now().U; got != test.want {
				t.Errorf("U goes on from %d, want %d", got, test.want)
			}
		})
	}
}
