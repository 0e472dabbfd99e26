package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/clocks"
	"github.com/claimq/claimq/cluster/lease"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// The node-to-node calls of a running node. Bodies are JSON. isOpenCall says which are
// answered to who is not a member.
const (
	callStatus = "status" // statusQuestion → peerStatus
	callHash   = "hash"   // hashQuestion → hashAnswer
	callDiffer = "differ" // majorityState → {}
	callMember = "member" // memberQuestion → memberAnswer; the leader makes the change
	callNudge  = "nudge"  // → {}: ask for your standing
	callTell   = "tell"   // told → {}; the leader answers it
	callHint   = "hint"   // lease.Hint → {}; the leader tells it
	callVouch  = "vouch"  // vouchQuestion → vouchAnswer
)

// callTable holds what answers the calls, by name.
type callTable map[string]func(ctx context.Context, body []byte) ([]byte, error)

// statusQuestion asks a node what it says of itself.
type statusQuestion struct {
	// ChainAt is the index at which it is to tell its chain.
	ChainAt uint64 `json:"chain_at,omitempty"`
}

// peerStatus is what a node says of itself.
type peerStatus struct {
	Record        fsm.NodeRecord  `json:"record"`
	State         string          `json:"state"`
	Term          uint64          `json:"term"`
	AppliedIndex  uint64          `json:"applied_index"`
	LastContactMS int64           `json:"last_contact_ms"`
	WallNS        int64           `json:"wall_ns,omitempty"` // its wall clock, since the Unix epoch; older versions do not say
	DiskLow       bool            `json:"disk_low,omitempty"`
	Room          *nodes.NodeRoom `json:"room,omitempty"`  // older versions do not say
	Zones         *nodes.Zones    `json:"zones,omitempty"` // older versions do not say
	Removed       bool            `json:"removed,omitempty"`
	// Chain is its chain at the index that it was asked for, "" if it cannot say (yet).
	Chain string `json:"chain,omitempty"`
	// Doubt is why it does not serve although it leads, Divided whether that is because
	// the voters differ.
	Doubt   string `json:"doubt,omitempty"`
	Divided bool   `json:"divided,omitempty"`
	// Hint is the latest of a leader's U that it was told.
	Hint lease.Hint `json:"hint"`

	// wall is what the asker makes of WallNS, against its own clock.
	wall clocks.Reading
}

func (n *Node) registerCalls() {
	n.calls = callTable{
		callStatus: n.answerStatus,
		callHash:   n.answerHash,
		callDiffer: n.answerDiffer,

		peer.CallWho:      n.answerWho,
		callMember:        n.answerMember,
		peer.CallStanding: n.answerStanding,
		callNudge:         n.answerNudge,
		callTell:          n.answerTell,
		callHint:          n.answerHint,
		callVouch:         n.answerVouch,
		callSnapshot:      n.answerSnapshot,
		callReadIndex:     n.answerReadIndex,
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

func (n *Node) answerStatus(_ context.Context, body []byte) ([]byte, error) {
	q, err := peer.ReadQuestion[statusQuestion](body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(n.status(q))
}

func (n *Node) answerHint(_ context.Context, body []byte) ([]byte, error) {
	return n.hints.answer(n.currentTerm(), body)
}

// status returns what this node says of itself.
func (n *Node) status(q statusQuestion) peerStatus {
	s := peerStatus{
		Record: n.record, State: "leader", Term: n.currentTerm(), AppliedIndex: n.fsm.AppliedIndex(), WallNS: n.clock.Wall(), DiskLow: n.space.Disk.Low(),
		Zones: n.zones(), Room: n.space.Left(), Removed: n.removed.Load(), Chain: n.fsm.ChainAt(q.ChainAt), Hint: n.hints.get(),
	}
	if n.raft == nil {
		return s
	}
	if d := n.doubt(); d != nil {
		s.Doubt, s.Divided = d.text, d.divided
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

// zones returns the release of the time zones that this node goes by.
func (n *Node) zones() *nodes.Zones {
	data := n.cfg.Zones.Current()
	return &nodes.Zones{Version: data.Version(), Sum: data.Sum()}
}

var errCannotAsk = errors.New("this node cannot ask others")

// ask calls another node and decodes its answer.
func ask[T any](ctx context.Context, n *Node, addr, name string, question any) (answer T, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	if n.call == nil {
		return answer, errCannotAsk
	}
	text, err := n.call(ctx, addr, name, body)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}
