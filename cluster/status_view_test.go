package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// A member's problems are described in words, and those that only need attention do not
// make it unhealthy.
func TestNode_viewOf(t *testing.T) {
	t.Parallel()
	clock := &handClock{}
	n, err := newNode(Config{NodeID: "n1", Logger: hclog.NewNullLogger()}.withDefaults(), Parts{UUID: "u1", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	l := &leadership{node: n.role}
	n.leader.Store(l)
	l.laggards.note("u-slow", true, clock.mono)
	clock.mono = catchUpMax + time.Minute
	l.laggards.note("u-slow", true, clock.mono) // the first time counts
	l.laggards.note("u-new", true, clock.mono)
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
		{"of an old version", voter, follower(func(s *peerStatus) { s.Record.Level = 4 }), nil, "version v2 knows feature level 4, others know 5", true, true},
		{"a nonvoter", nonvoter("u2"), follower(func(*peerStatus) {}), nil, "", true, true},
		{"a nonvoter that comes", nonvoter("u-new"), follower(func(*peerStatus) {}), nil, "gets its vote once it has caught up", true, true},
		{"a nonvoter that does not", nonvoter("u-slow"), follower(func(*peerStatus) {}), nil, "has not caught up in 6m0s", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := n.statuses.viewer().viewOf(tc.server, tc.status.Record, tc.status, tc.err)
			if v.Problem == "" {
				v.Problem = n.statuses.viewer().warningOf(tc.server, tc.status, 5)
			}
			if tc.want == "" && v.Problem != "" || !strings.Contains(v.Problem, tc.want) {
				t.Errorf("problem %q, want one that says %q", v.Problem, tc.want)
			}
			if v.TakesPart != tc.takesPart || v.Healthy != tc.healthy {
				t.Errorf("takes part %t, healthy %t; want %t, %t", v.TakesPart, v.Healthy, tc.takesPart, tc.healthy)
			}
		})
	}
	l.laggards.note("u-new", false, clock.mono)
	if text := n.statuses.viewer().catchingUp("u-new"); text != "" {
		t.Errorf("one that has caught up %s", text)
	}
}

// A node whose time zones differ from the leader's is reported, one that does not say is
// not.
func TestZonesOf(t *testing.T) {
	t.Parallel()
	leads := &nodes.Zones{Version: "2026f", Sum: "0a"}
	for _, tc := range []struct {
		name        string
		node, leads *nodes.Zones
		want        string // "" = nothing
	}{
		{"the same", &nodes.Zones{Version: "2026f", Sum: "0a"}, leads, ""},
		{"another release", &nodes.Zones{Version: "2026e", Sum: "0b"}, leads, "it has the time zones of 2026e (0b), the leader those of 2026f (0a)"},
		{"another file of the release", &nodes.Zones{Version: "2026f", Sum: "0c"}, leads, "the time zones of 2026f (0c), the leader those of 2026f (0a)"},
		{"an old version", nil, leads, ""},
		{"no leader", leads, nil, ""},
	} {
		if got := zonesOf(peerStatus{Zones: tc.node}, tc.leads); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A clock that is off according to a majority of voters' clocks is reported for its node,
// with the consequences; a clock that may be correct is not.
func TestClockOf(t *testing.T) {
	t.Parallel()
	majority := lease.Wall(1e18)
	for _, tc := range []struct {
		name         string
		ahead, slack time.Duration
		problem      string // "" = none
	}{
		{"right", 0, 0, ""},
		{"ahead", 3 * time.Second, time.Second, "its wall clock is 2s ahead of what most voters' show: see"},
		{"behind", -3 * time.Second, 0, "its wall clock is 3s behind what most voters' show: see"},
		{"not certainly off", 3 * time.Second, 2 * time.Second, ""},
		{"far ahead", 24 * time.Hour, 0, "its wall clock is 24h0m0s ahead of what most voters' show, so times of day do not follow it"},
		{"far behind", -24 * time.Hour, 0, "its wall clock is 24h0m0s behind what most voters' show, so times of day do not follow it"},
	} {
		ms, problem := clockOf(clocks.Read("n2", int64(majority)+int64(tc.ahead), -tc.slack, 2*tc.slack), &majority)
		if ms == nil || *ms != tc.ahead.Milliseconds() || tc.problem == "" && problem != "" || !strings.HasPrefix(problem, tc.problem) {
			t.Errorf("%s: %v, %q; want %d, %q", tc.name, ms, problem, tc.ahead.Milliseconds(), tc.problem)
		}
	}
	if ms, problem := clockOf(clocks.Reading{NodeID: "n2"}, nil); ms != nil || problem != "" {
		t.Errorf("without a majority: %v, %q", ms, problem)
	}
	if ms, problem := clockOf(clocks.Reading{}, &majority); ms != nil || problem != "" {
		t.Errorf("of one that was not read: %v, %q", ms, problem)
	}
}
