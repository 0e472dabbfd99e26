package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// The operator's calls reach the node with their arguments, and are answered with the outcome; each successful one is
// recorded in the trail.
func TestMembership(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	if _, err := node.Apply(command.SetLevel{Level: fsm.FeatureLevel()}); err != nil {
		t.Fatal(err)
	}
	node.View = nodes.ClusterView{Leader: "n1", Nodes: []nodes.NodeView{
		{NodeRecord: fsm.NodeRecord{NodeID: "n4", UUID: "u4", PeerAddr: "h4:7401"}, Suffrage: "nonvoter", State: "follower", Healthy: true},
	}}
	for _, c := range []struct{ target, body, change, answer, event string }{
		{"POST /api/cluster/join", `{"node_id":"n4","peer_addr":"h4:7401"}`, "join n4 at h4:7401, voter true", `"node":{"node_id":"n4","uuid":"u4"`, "member_added n4"},
		{"POST /api/cluster/join", `{"node_id":"n4","peer_addr":"[::1]:1","voter":null}`, "join n4 at [::1]:1, voter true", `"suffrage":"nonvoter"`, "member_added n4"},
		{"POST /api/cluster/join", `{"node_id":"n4","peer_addr":"h4:7401","voter":false}`, "join n4 at h4:7401, voter false", `{"success":true,"node":{`, "member_added n4"},
		{"POST /api/cluster/promote", `{"node_id":"n4"}`, "promote n4", `{"success":true,"node":{"node_id":"n4"`, "member_promoted n4"},
		{"POST /api/cluster/demote", `{"node_id":"n4"}`, "demote n4", `{"success":true,"node":{"node_id":"n4"`, "member_demoted n4"},
		{"POST /api/cluster/transfer", `{"node_id":"n2"}`, "transfer to n2", `{"success":true,"leader":"n2"}`, "leadership_transferred to n2"},
		{"POST /api/cluster/transfer", ``, "transfer to ", `{"success":true,"leader":"n2"}`, "leadership_transferred to n2"},
	} {
		node.Changes = nil
		got := s.call(t, c.target, c.body)
		if got.status != 200 || !strings.Contains(got.body, c.answer) {
			t.Errorf("%s %s: %d %s", c.target, c.body, got.status, got.body)
		}
		if diff := cmp.Diff([]string{c.change}, node.Changes); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.target, c.body, diff)
		}
		if told := lastTold(node); told != c.event {
			t.Errorf("%s %s: the trail says %q, want %q", c.target, c.body, told, c.event)
		}
	}
}

// lastTold returns the last event of the trail.
func lastTold(n *nodetest.Node) string {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	last := n.Proposed[len(n.Proposed)-1]
	if tell, ok := last.(command.Tell); ok {
		return tell.Kind.String() + " " + tell.What
	}
	return ""
}

// A refusal has the node's reason and advice, and is not recorded in the trail.
func TestMembership_refused(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	node.MemberErr = &nodes.MembershipRefused{Reason: "n1 is the last voter", Advice: "Promote another"}
	calls := map[string]string{
		"POST /api/cluster/join":     `{"node_id":"n4","peer_addr":"h4:7401"}`,
		"POST /api/cluster/promote":  `{"node_id":"n4"}`,
		"POST /api/cluster/demote":   `{"node_id":"n4"}`,
		"POST /api/cluster/transfer": `{"node_id":"n2"}`,
	}
	for target, body := range calls {
		got := s.call(t, target, body)
		got.refused(t, wire.CodeMembershipRefused)
		if !strings.Contains(got.body, `"error":"n1 is the last voter"`) || !strings.Contains(got.body, `"message":"Promote another"`) {
			t.Errorf("%s: %s", target, got.body)
		}
	}
	node.MemberErr = nodes.ErrNoLeader
	for target, body := range calls {
		s.call(t, target, body).refused(t, wire.CodeNoLeader)
	}
	s.call(t, "GET /api/cluster/hash", "").refused(t, wire.CodeNoLeader)
	node.MemberErr = nodes.ErrOutcomeUnknown
	for target, body := range calls {
		s.call(t, target, body).refused(t, wire.CodeOutcomeUnknown)
	}
	node.MemberErr = nodes.ErrLevel
	s.call(t, "POST /api/cluster/demote", `{"node_id":"n4"}`).refused(t, wire.CodeInvalidRequest)
	if len(node.Proposed) != 0 {
		t.Errorf("the trail tells of %v", node.Proposed)
	}
}

// Invalid requests are refused before the node is asked.
func TestMembership_badInput(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	for target, bodies := range map[string][]string{
		"POST /api/cluster/join": {
			``, `{}`, `{"node_id":"n4"}`, `{"peer_addr":"h:1"}`, `{"node_id":"n4","peer_addr":"h"}`, `{"node_id":"n4","peer_addr":":1"}`,
			`{"node_id":"n4","peer_addr":"h:0"}`, `{"node_id":"n4","peer_addr":"h:x"}`, `{"node_id":"n4","peer_addr":"h:65536"}`, `{"node_id":"n4","peer_addr":""}`,
			`{"node_id":"n 4","peer_addr":"h:1"}`, `{"node_id":"n4","peer_addr":1}`, `{"node_id":"n4","peer_addr":"h:1","voter":"yes"}`,
			`{"node_id":"n4","peer_addr":"h:1","force":true}`, `{"node_id":"n4","peer_addr":"` + strings.Repeat("h", 255) + `:1"}`,
		},
		"POST /api/cluster/promote":      {``, `{}`, `{"node_id":""}`, `{"node_id":"a/b"}`, `{"node_id":"` + strings.Repeat("n", 65) + `"}`, `{"node_id":7}`, `{"node_id":"n4","voter":true}`, `[]`},
		"POST /api/cluster/demote":       {``, `{}`, `{"node":"n4"}`},
		"POST /api/cluster/transfer":     {`{"node_id":7}`, `{"node_id":""}`, `{"to":"n2"}`, `"n2"`},
		"POST /api/cluster/transfer?x=1": {`{}`},
		"GET /api/cluster/hash?x=1":      {``},
	} {
		for _, body := range bodies {
			s.call(t, target, body).refused(t, wire.CodeInvalidRequest)
		}
	}
	if len(node.Changes) != 0 {
		t.Errorf("the node was asked for %v", node.Changes)
	}
}

// The hashes are answered in the contract's form.
func TestHashes(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	node.HashView = nodes.HashView{Index: 7, Agree: true, Nodes: []nodes.NodeHash{{NodeID: "n1", Hash: "ab"}, {NodeID: "n2"}}}
	got := s.call(t, "GET /api/cluster/hash", "")
	want := `{"success":true,"index":7,"agree":true,"nodes":[{"node_id":"n1","hash":"ab"},{"node_id":"n2","hash":""}]}`
	if got.status != 200 || got.body != want {
		t.Errorf("%d\n got %s\nwant %s", got.status, got.body, want)
	}
}
