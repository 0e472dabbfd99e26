// Package joining contains how nodes talk before they are members of one cluster.
//
//	meet.go  nodes that were started with one list agree who bootstraps
//	join.go  a node asks to become a member, and the leader's answer
//
// It works on the peer port and stores nothing: Raft's configuration defines the members,
// and package cluster changes it when it admits a node. Invariants:
//
//   - A node that was admitted twice is one member, identified by its UUID.
//   - Nodes bootstrap only if all nodes of one list are empty and agree.
//   - A node whose folder may be the wiped one of a member does not take part.
package joining

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
)

const (
	joinBackoffMin  = 250 * time.Millisecond
	joinBackoffMax  = 5 * time.Second
	joinLogInterval = 5 * time.Second
	// joinCallTimeout bounds one question to one node. It is long because the leader writes
	// to its log before it answers.
	joinCallTimeout = 10 * time.Second
	// joinHopsMax bounds how often one attempt is redirected to another leader.
	joinHopsMax = 3
	// joinPeersMax bounds the peers of --join.
	joinPeersMax = 32
)

// TokenBytesMax bounds a join token.
const TokenBytesMax = 256

// Request is the body of peer.CallJoin.
type Request struct {
	fsm.NodeRecord
	Token string `json:",omitempty"` // a join token; "": an operator admits the node
}

// ErrRefused is returned when the cluster refuses this node. Waiting does
// not help.
var ErrRefused = errors.New("the cluster refuses this node")

// Refusal is the leader's permanent reason for not admitting a node. It is an ErrRefused.
// Any other error of JoinConfig.Admit is retried.
type Refusal struct{ Text string }

// Error returns the reason.
func (e *Refusal) Error() string { return ErrRefused.Error() + ": " + e.Text }

// Is makes a Refusal match ErrRefused.
func (e *Refusal) Is(target error) bool { return target == ErrRefused }

// Admission tells a node that it is now a member.
type Admission struct {
	UUID      string `json:"uuid"` // of the admitted node
	ClusterID string `json:"cluster_id"`
	// Members are the members, the sender first.
	Members []storage.Introducer `json:"members"`
}

// Joined is the answer to a node that was admitted.
type Joined struct {
	ClusterID string
	Members   []storage.Introducer // the node that admitted it first
}

// JoinConfig configures answers to join requests.
type JoinConfig struct {
	// Leader returns the peer address of the leader, "" if unknown, and whether this node
	// is the leader.
	Leader func() (addr string, self bool)
	// Admit adds the node as a nonvoter, unless it is a member already, and returns the
	// cluster's id. It is only called on the leader. A *Refusal is final; the joining node
	// retries after any other error. Repeating it for a member with the same record
	// succeeds.
	Admit func(ctx context.Context, req Request) (clusterID string, err error)
	// Members returns the members, this node first.
	Members func() []storage.Introducer
	// Logger gets a line for each admitted node, and refusals as limited by a
	// peer.RefusalLog.
	Logger hclog.Logger
}

// joinAnswer is the reply. Exactly one field is set, apart from Members.
type joinAnswer struct {
	ClusterID  string               `json:"cluster_id,omitempty"`  // admitted
	Members    []storage.Introducer `json:"members,omitempty"`     // with ClusterID
	LeaderAddr string               `json:"leader_addr,omitempty"` // ask there
	Refused    string               `json:"refused,omitempty"`     // permanently
	Retry      string               `json:"retry,omitempty"`       // not now; the reason
}

// ServeJoins answers join requests: the leader decides, other nodes redirect to it.
func ServeJoins(port peerHandler, cfg JoinConfig) {
	var refusals peer.RefusalLog
	port.Handle(peer.CallJoin, func(ctx context.Context, from peer.Hello, body []byte) ([]byte, error) {
		return json.Marshal(answerJoin(ctx, cfg, &refusals, from, body))
	})
}

func answerJoin(ctx context.Context, cfg JoinConfig, refusals *peer.RefusalLog, from peer.Hello, body []byte) joinAnswer {
	var req Request
	if err := json.Unmarshal(body, &req); err != nil || len(req.Token) > TokenBytesMax {
		return joinAnswer{Refused: "the request to join is malformed"}
	}
	// The handshake has proven that the sender has the hello's UUID, and the join key.
	record := req.NodeRecord
	if record.UUID != from.UUID || record.NodeID != from.NodeID || record.PeerAddr == "" {
		return joinAnswer{Refused: "the request to join is not about the node that sent it"}
	}
	addr, self := cfg.Leader()
	if !self {
		if addr == "" {
			return joinAnswer{Retry: "no leader is known here"}
		}
		return joinAnswer{LeaderAddr: addr}
	}
	clusterID, err := cfg.Admit(ctx, req)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		refusals.Warn(cfg.Logger, "refused a node that wants to join", "node_id", record.NodeID, "uuid", record.UUID, "peer_addr", record.PeerAddr, "reason", refusal.Text)
		return joinAnswer{Refused: refusal.Text}
	case err != nil:
		return joinAnswer{Retry: err.Error()}
	default:
		cfg.Logger.Info("admitted a node", "node_id", record.NodeID, "uuid", record.UUID, "peer_addr", record.PeerAddr)
		return joinAnswer{ClusterID: clusterID, Members: cfg.Members()}
	}
}

// Check returns a *Refusal if a node may not join the members at the cluster's feature
// level, or nil. It is the part of Admit that needs no Raft.
func Check(record fsm.NodeRecord, members []fsm.NodeRecord, level uint32) error {
	if record.Level < level {
		return &Refusal{Text: fmt.Sprintf("node %q (version %s) knows feature level %d, the cluster is at %d: run a newer version on it", record.NodeID, record.Version, record.Level, level)}
	}
	for _, member := range members {
		switch {
		case member.UUID == record.UUID && member.NodeID != record.NodeID:
			return &Refusal{Text: fmt.Sprintf("identity %s belongs to member %q: the data folder of node %q is a copy of its folder; give it an empty --data-dir", record.UUID, member.NodeID, record.NodeID)}
		case member.UUID == record.UUID:
		case member.NodeID == record.NodeID:
			return &Refusal{Text: fmt.Sprintf("node id %q is taken by a member with another identity, %s at %s: choose another --node-id with an empty data folder, or, if that member is gone for good, remove it first with `claimq cluster remove %s`", record.NodeID, member.UUID, member.PeerAddr, member.NodeID)}
		case member.PeerAddr == record.PeerAddr:
			return &Refusal{Text: fmt.Sprintf("peer address %s belongs to member %q: choose another --peer-addr, or, if that member is gone for good, remove it first with `claimq cluster remove %s`", record.PeerAddr, member.NodeID, member.NodeID)}
		}
	}
	return nil
}

// Join asks the peers in turn to make the node of req a member, until one has its leader do
// so or reports that it is one already, or ctx ends. A message on admitted makes it ask at
// once; the message itself is not trusted. ErrRefused is final. Asking again is safe,
// because the record's UUID identifies the node.
func Join(ctx context.Context, port peerCaller, peers []string, req Request, admitted <-chan Admission, logger hclog.Logger) (Joined, error) {
	if len(peers) == 0 || len(peers) > joinPeersMax {
		return Joined{}, fmt.Errorf("--join takes 1 to %d peer addresses, got %d", joinPeersMax, len(peers))
	}
	body, err := json.Marshal(req)
	if err != nil {
		return Joined{}, fmt.Errorf("encode request to join: %w", err)
	}
	var loggedAt time.Time
	for backoff := joinBackoffMin; ; backoff = min(2*backoff, joinBackoffMax) {
		reasons := make([]string, 0, len(peers))
		for _, peer := range peers {
			result, err := requestJoinAt(ctx, port, peer, body)
			if err == nil || errors.Is(err, ErrRefused) {
				return result, err
			}
			reasons = append(reasons, fmt.Sprintf("%s: %v", peer, err))
		}
		if time.Since(loggedAt) >= joinLogInterval {
			loggedAt = time.Now()
			logger.Info("not joined yet, trying again", "reasons", strings.Join(reasons, "; "))
		}
		select {
		case <-admitted: // only a hint: the peers confirm it
		case <-time.After(backoff):
		case <-ctx.Done():
			return Joined{}, fmt.Errorf("join through %s: %w", strings.Join(reasons, "; "), ctx.Err())
		}
	}
}

// requestJoinAt asks one peer and follows it to the leader.
func requestJoinAt(ctx context.Context, port peerCaller, addr string, body []byte) (Joined, error) {
	asked := make([]string, 0, joinHopsMax)
	for range joinHopsMax {
		asked = append(asked, addr)
		answer, by, err := callJoinOnce(ctx, port, addr, body)
		if err != nil {
			return Joined{}, err
		}
		switch {
		case answer.Refused != "":
			return Joined{}, &Refusal{Text: peer.Printable(answer.Refused)}
		case answer.ClusterID != "":
			return Joined{ClusterID: answer.ClusterID, Members: IntroducedBy(storage.Introducer{UUID: by.UUID, PeerAddr: addr}, answer.Members)}, nil
		case answer.Retry != "" || answer.LeaderAddr == "":
			return Joined{}, fmt.Errorf("not now: %s", peer.Printable(answer.Retry))
		case slices.Contains(asked, answer.LeaderAddr):
			return Joined{}, errors.New("not now: the leader is changing")
		}
		addr = answer.LeaderAddr
	}
	return Joined{}, fmt.Errorf("sent on %d times without reaching the leader", joinHopsMax)
}

// IntroducedBy returns the members that the admitting node reported, with that node first,
// as this node has reached it.
func IntroducedBy(leader storage.Introducer, told []storage.Introducer) []storage.Introducer {
	members := []storage.Introducer{leader}
	for _, m := range told {
		if m.UUID != leader.UUID {
			members = append(members, m)
		}
	}
	return members
}

func callJoinOnce(ctx context.Context, port peerCaller, addr string, body []byte) (answer joinAnswer, by peer.Hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinCallTimeout)
	defer cancel()
	text, by, err := port.Ask(ctx, addr, peer.CallJoin, body)
	if err != nil {
		return joinAnswer{}, by, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return joinAnswer{}, by, fmt.Errorf("decode answer: %w", err)
	}
	return answer, by, nil
}
