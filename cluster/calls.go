package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// The node-to-node calls of a running node. Bodies are JSON.
const (
	callStatus   = "status"   // → peerStatus
	callHash     = "hash"     // hashQuestion → hashAnswer
	callDiffer   = "differ"   // hashAnswer of the majority → {}
	callWho      = "who"      // → whoAnswer
	callAdmitted = "admitted" // admission → {}; a node without a cluster takes it
	callMember   = "member"   // memberQuestion → memberAnswer; the leader makes the change
	callStanding = "standing" // standingQuestion → standingAnswer
	callNudge    = "nudge"    // → {}: ask for your standing
	callTell     = "tell"     // fsm.Tell → {}; the leader answers it
)

// isForMembers reports whether a call is answered to members of the cluster alone:
// one that changes something, or makes work.
func isForMembers(call string) bool {
	switch call {
	case callMember, callTell, callDiffer, callSnapshot:
		return true
	}
	return false
}

// callTable holds what answers the calls, by name.
type callTable map[string]func(ctx context.Context, body []byte) ([]byte, error)

// peerStatus is what a node says of itself.
type peerStatus struct {
	Record        fsm.NodeRecord `json:"record"`
	State         string         `json:"state"`
	Term          uint64         `json:"term"`
	AppliedIndex  uint64         `json:"applied_index"`
	LastContactMS int64          `json:"last_contact_ms"`
	WallNS        int64          `json:"wall_ns,omitempty"` // its wall clock, since the Unix epoch; older versions do not say
	DiskLow       bool           `json:"disk_low,omitempty"`
	Removed       bool           `json:"removed,omitempty"`

	// wall is what the asker makes of WallNS, against its own clock.
	wall wallReading
}

func (n *Node) registerCalls() {
	n.calls = callTable{
		callStatus: func(context.Context, []byte) ([]byte, error) { return json.Marshal(n.status()) },
		callHash:   n.answerHash,
		callDiffer: n.answerDiffer,

		callWho:       n.answerWho,
		callMember:    n.answerMember,
		callStanding:  n.answerStanding,
		callNudge:     n.answerNudge,
		callTell:      n.answerTell,
		callSnapshot:  n.answerSnapshot,
		callReadIndex: n.answerReadIndex,
	}
}

// Answer answers another node's call. It is what Parts.Call of the other node
// leads to; nodes with a peer port are asked there.
func (n *Node) Answer(ctx context.Context, name string, body []byte) ([]byte, error) {
	answer := n.calls[name]
	if answer == nil || n.closing.Load() {
		return nil, fmt.Errorf("call %q: not answered here", name)
	}
	return answer(ctx, body)
}

// status returns what this node says of itself.
func (n *Node) status() peerStatus {
	s := peerStatus{
		Record: n.record, State: "leader", Term: n.currentTerm(), AppliedIndex: n.fsm.applied.Load(), WallNS: n.clock.Wall(), DiskLow: n.disk.low.Load(),
		Removed: n.removed.Load(),
	}
	if n.raft == nil {
		return s
	}
	switch n.raft.State() {
	case raft.Leader:
	case raft.Candidate:
		s.State = "candidate"
	default:
		s.State = "follower"
	}
	if s.State != "leader" {
		s.LastContactMS = n.lastContactMS()
	}
	return s
}

// ask calls another node and decodes its answer.
func ask[T any](ctx context.Context, n *Node, addr, name string, question any) (answer T, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	text, err := n.call(ctx, addr, name, body)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}
