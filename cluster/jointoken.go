package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/claimq/claimq/fsm"
)

// joinTokenBytesMax bounds the token that a node shows.
const joinTokenBytesMax = 256

// joinRequest is the body of peer.CallJoin: who asks, and by what right.
type joinRequest struct {
	fsm.NodeRecord
	Token string `json:",omitempty"` // a join token; "": an operator admits the node
}

// mayJoin returns nil if the node, which is no member yet, may become one without an
// operator's call: it shows a join token, which is then used. It is called on the
// leader, with the membership locked. A *joinRefusal is final; another error is tried
// again by the node that joins.
func (n *Node) mayJoin(ctx context.Context, record fsm.NodeRecord, token string) error {
	if token == "" {
		return fmt.Errorf("an operator has to admit this node: run `claimq cluster join %s %s` against the cluster, or start the node with a join token (--join-token-file)",
			record.NodeID, record.PeerAddr)
	}
	hash := sha256.Sum256([]byte(token))
	known := false
	n.fsm.read(func(m *fsm.Machine) {
		known = slices.ContainsFunc(m.JoinTokens(), func(t *fsm.JoinToken) bool { return bytes.Equal(t.Hash, hash[:]) })
	})
	if !known { // nothing is written for whoever guesses
		return errTokenRefused()
	}
	p, err := n.batcher.Propose(ctx, fsm.UseJoinToken{Hash: hash[:], UUID: record.UUID, NodeID: record.NodeID})
	if err != nil {
		return fmt.Errorf("use the join token: %w", err)
	}
	if p.Result.Code != "" {
		return errTokenRefused()
	}
	return nil
}

func errTokenRefused() error {
	return &joinRefusal{Text: "its join token is unknown, used up, revoked or expired: make another one with `claimq cluster token create`"}
}

// joinToken returns the join token of a node that joins, "" if it has none.
func (c *Config) joinToken() (string, error) {
	if c.JoinToken == nil {
		return "", nil
	}
	token, err := c.JoinToken()
	if err == nil && len(token) > joinTokenBytesMax {
		err = fmt.Errorf("the join token has %d characters, it must have %d or fewer", len(token), joinTokenBytesMax)
	}
	return token, err
}
