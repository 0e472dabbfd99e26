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

// The calls between running nodes. Bodies are JSON. isOpenCall says which ones nodes that
// are not members may make.
const (
	callStatus = "status" // statusQuestion → peerStatus
	callHash   = "hash"   // hashQuestion → hashAnswer
	callDiffer = "differ" // majorityState → {}
	callMember = "member" // memberQuestion → memberAnswer; the leader makes the change
	callNudge  = "nudge"  // → {}: check your standing
	callTell   = "tell"   // told → {}; only the leader answers
	callHint   = "hint"   // lease.Hint → {}; sent by the leader
	callVouch  = "vouch"  // vouchQuestion → vouchAnswer
)

// callTable holds the handlers of calls by name.
type callTable map[string]func(ctx context.Context, body []byte) ([]byte, error)

// statusQuestion asks a node for its status.
type statusQuestion struct {
	// ChainAt is the index for which the node should report its chain.
	ChainAt uint64 `json:"chain_at,omitempty"`
}

// peerStatus is a node's description of itself.
type peerStatus struct {
	Record        fsm.NodeRecord  `json:"record"`
	State         string          `json:"state"`
	Term          uint64          `json:"term"`
	AppliedIndex  uint64          `json:"applied_index"`
	LastContactMS int64           `json:"last_contact_ms"`
	WallNS        int64           `json:"wall_ns,omitempty"` // wall clock in ns since the Unix epoch; missing from older versions
	DiskLow       bool            `json:"disk_low,omitempty"`
	Room          *nodes.NodeRoom `json:"room,omitempty"`  // missing from older versions
	Zones         *nodes.Zones    `json:"zones,omitempty"` // missing from older versions
	Removed       bool            `json:"removed,omitempty"`
	// Chain is the chain at the requested index, "" if unknown (yet).
	Chain string `json:"chain,omitempty"`
	// Doubt says why it leads but does not serve; Divided says whether that is because the
	// voters differ.
	Doubt   string `json:"doubt,omitempty"`
	Divided bool   `json:"divided,omitempty"`
	// Hint is the latest hint of a leader's U that the node received.
	Hint lease.Hint `json:"hint"`

	// wall is WallNS as read against the asker's clock.
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

// Answer answers another node's call. Parts.Call of the other node leads here; nodes with a
// peer port use that.
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

// status returns this node's description of itself.
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

// zones returns the version of the time zone data that this node uses.
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
