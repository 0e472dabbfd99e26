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
	// joinCallTimeout bounds one question to one node: the leader writes to its
	// log before it answers.
	joinCallTimeout = 10 * time.Second
	// joinHopsMax bounds how often one attempt is sent on to another leader.
	joinHopsMax = 3
	// joinPeersMax bounds the peers of --join.
	joinPeersMax = 32
)

// TokenBytesMax bounds the token that a node shows.
const TokenBytesMax = 256

// Request is the body of peer.CallJoin: who asks, and by what right.
type Request struct {
	fsm.NodeRecord
	Token string `json:",omitempty"` // a join token; "": an operator admits the node
}

// ErrRefused is returned when the cluster will not have this node as it is.
// Waiting does not help.
var ErrRefused = errors.New("the cluster refuses this node")

// Refusal is a reason of the leader's not to admit a node, for good. It is
// an ErrRefused. Any other error of admitJoin is tried again.
type Refusal struct{ Text string }

// Error returns the reason.
func (e *Refusal) Error() string { return ErrRefused.Error() + ": " + e.Text }

// Is makes the refusal an ErrRefused.
func (e *Refusal) Is(target error) bool { return target == ErrRefused }

// Admission tells a node that it is a member now.
type Admission struct {
	UUID      string `json:"uuid"` // whom it is for
	ClusterID string `json:"cluster_id"`
	// Members are the members, who tells of it first.
	Members []storage.Introducer `json:"members"`
}

// Joined is what a node learns when it was admitted.
type Joined struct {
	ClusterID string
	Members   []storage.Introducer // who admitted it first
}

// JoinConfig is what a node needs to answer those who want to join.
type JoinConfig struct {
	// Leader returns the peer address of the leader, "" if none is known, and
	// whether that is this node.
	Leader func() (addr string, self bool)
	// Admit adds the node as a nonvoter, or finds it a member already, and
	// returns the cluster's id. It is only called on the leader. A *Refusal
	// is final; anything else is tried again by the node that joins. A repeat
	// for a member with the same record succeeds.
	Admit func(ctx context.Context, req Request) (clusterID string, err error)
	// Members returns the members, this node first.
	Members func() []storage.Introducer
	// Logger gets a line for each node that is admitted, and of those that are refused
	// what a peer.RefusalLog says.
	Logger hclog.Logger
}

// joinAnswer is what goes back. Exactly one of the fields is set, but for Members.
type joinAnswer struct {
	ClusterID  string               `json:"cluster_id,omitempty"`  // admitted
	Members    []storage.Introducer `json:"members,omitempty"`     // with ClusterID
	LeaderAddr string               `json:"leader_addr,omitempty"` // ask there
	Refused    string               `json:"refused,omitempty"`     // for good
	Retry      string               `json:"retry,omitempty"`       // not now, because
}

// ServeJoins answers those who want to join: the leader decides, others say
// where the leader is.
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
	// The handshake has proven that the hello's node has its UUID, and the join key.
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

// Check says whether a node may become a member beside those that are, at
// the cluster's feature level: nil, or a *Refusal. It is the part of Admit
// that needs no Raft.
func Check(record fsm.NodeRecord, members []fsm.NodeRecord, level uint32) error {
	if record.Level < level {
		return &Refusal{Text: fmt.Sprintf("node %q (version %s) knows feature level %d, the cluster is at %d: run a newer version on it", record.NodeID, record.Version, record.Level, level)}
	}
	for _, member := range members {
		switch {
		case member.UUID == record.UUID && member.NodeID != record.NodeID:
			return &Refusal{Text: fmt.Sprintf("identity %s is that of member %q: the data folder of node %q is a copy of its folder; give it an empty --data-dir", record.UUID, member.NodeID, record.NodeID)}
		case member.UUID == record.UUID:
		case member.NodeID == record.NodeID:
			return &Refusal{Text: fmt.Sprintf("node id %q is taken by a member with another identity, %s at %s: choose another --node-id with an empty data folder, or, if that member is gone for good, remove it first with `claimq cluster remove %s`", record.NodeID, member.UUID, member.PeerAddr, member.NodeID)}
		case member.PeerAddr == record.PeerAddr:
			return &Refusal{Text: fmt.Sprintf("peer address %s is that of member %q: choose another --peer-addr, or, if that member is gone for good, remove it first with `claimq cluster remove %s`", record.PeerAddr, member.NodeID, member.NodeID)}
		}
	}
	return nil
}

// Join asks the peers, in turn, to make the node of req a member, until one
// of them has its leader do so, or finds that an operator has, or ctx ends. It asks
// at once where admitted says that one has: whoever said so is not believed, the peers
// are. ErrRefused is final. Asking again is safe: the record's UUID says that it is
// the same node.
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
		case <-admitted: // so it is said: who was asked knows
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

// IntroducedBy returns the members that who admitted this node told of, itself first, as
// this node has met it.
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
