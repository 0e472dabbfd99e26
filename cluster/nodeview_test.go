package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// What a member needs is said in words, and what only needs attention does not
// make it unhealthy.
func TestNode_viewOf(t *testing.T) {
	t.Parallel()
	clock := &handClock{}
	n, err := newNode(Config{NodeID: "n1", Logger: hclog.NewNullLogger()}.withDefaults(), Parts{UUID: "u1", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	l := &leadership{node: n, catching: make(map[raft.ServerID]time.Duration)}
	n.leader.Store(l)
	l.noteCatching("u-slow", true)
	clock.mono = catchUpMax + time.Minute
	l.noteCatching("u-slow", true) // the first time counts
	l.noteCatching("u-new", true)
	voter := raft.Server{ID: "u2", Suffrage: raft.Voter}
	nonvoter := func(id raft.ServerID) raft.Server { return raft.Server{ID: id, Suffrage: raft.Nonvoter} }
	follower := func(change func(*peerStatus)) peerStatus {
		s := peerStatus{Record: fsm.NodeRecord{UUID: "u2", NodeID: "n2", Version: "v2", Level: 5}, State: "follower"}
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name      string
		server    raft.Server
		status    peerStatus
		err       error
		want      string // in the problem; "" = none
		takesPart bool
		healthy   bool
	}{
		{"well", voter, follower(func(*peerStatus) {}), nil, "", true, true},
		{"silent", voter, peerStatus{}, errors.New("connection refused"), "does not answer on its peer port: connection refused", false, false},
		{"a candidate", voter, follower(func(s *peerStatus) { s.State = "candidate" }), nil, "finds no leader", false, false},
		{"without contact", voter, follower(func(s *peerStatus) { s.LastContactMS = 2001 }), nil, "hears nothing from the leader", false, false},
		{"never in contact", voter, follower(func(s *peerStatus) { s.LastContactMS = -1 }), nil, "hears nothing from the leader", false, false},
		{"removed", voter, follower(func(s *peerStatus) { s.Removed = true }), nil, "was removed", false, false},
		{"low on disk", voter, follower(func(s *peerStatus) { s.DiskLow = true }), nil, "disk is low", true, false},
		{"ahead in time", voter, follower(func(s *peerStatus) { s.wall = wallReading{ahead: 3 * time.Second, slack: time.Second} }), nil, "2s ahead of that of n1", true, true},
		{"behind in time", voter, follower(func(s *peerStatus) { s.wall = wallReading{ahead: -3 * time.Second} }), nil, "3s behind that of n1", true, true},
		{"not certainly off", voter, follower(func(s *peerStatus) { s.wall = wallReading{ahead: 3 * time.Second, slack: 2 * time.Second} }), nil, "", true, true},
		{"of an old version", voter, follower(func(s *peerStatus) { s.Record.Level = 4 }), nil, "version v2 knows feature level 4, others know 5", true, true},
		{"a nonvoter", nonvoter("u2"), follower(func(*peerStatus) {}), nil, "", true, true},
		{"a nonvoter that comes", nonvoter("u-new"), follower(func(*peerStatus) {}), nil, "gets its vote once it has caught up", true, true},
		{"a nonvoter that does not", nonvoter("u-slow"), follower(func(*peerStatus) {}), nil, "has not caught up in 6m0s", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := n.viewOf(tc.server, tc.status.Record, tc.status, tc.err)
			if v.Problem == "" {
				v.Problem = n.warningOf(tc.server, tc.status, 5)
			}
			if tc.want == "" && v.Problem != "" || !strings.Contains(v.Problem, tc.want) {
				t.Errorf("problem %q, want one that says %q", v.Problem, tc.want)
			}
			if v.TakesPart != tc.takesPart || v.Healthy != tc.healthy {
				t.Errorf("takes part %t, healthy %t; want %t, %t", v.TakesPart, v.Healthy, tc.takesPart, tc.healthy)
			}
		})
	}
	l.noteCatching("u-new", false)
	if text := n.catchingUp("u-new"); text != "" {
		t.Errorf("one that has caught up %s", text)
	}
}
