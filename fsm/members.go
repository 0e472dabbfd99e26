package fsm

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// setNode records a node. It copies the slice, because a snapshot may share it.
func setNode(m *Machine, c command.SetNode) Result {
	at, known := findNode(m, c.Node.UUID)
	if known && m.nodes[at] == c.Node {
		return Result{}
	}
	nodes := slices.Clone(m.nodes)
	if known {
		nodes[at] = c.Node
	} else {
		nodes = slices.Insert(nodes, at, c.Node)
	}
	m.nodes = nodes
	m.tellAct(event.NodeSet, c.Node.NodeID)
	return Result{}
}

// removeNode forgets a node, if it is known.
func removeNode(m *Machine, c command.RemoveNode) Result {
	if at, known := findNode(m, c.UUID); known {
		nodeID := m.nodes[at].NodeID
		m.nodes = slices.Delete(slices.Clone(m.nodes), at, at+1)
		m.tellAct(event.NodeRemoved, nodeID)
	}
	return Result{}
}

// setLevel raises the feature level and never lowers it. The first level also sets the
// defaults.
func setLevel(m *Machine, c command.SetLevel) Result {
	if c.Level > m.header.Level {
		if m.header.Level == 0 {
			m.header.Defaults = c.Defaults
		}
		m.header.Level = c.Level
		m.header.MoveOn(c.Place)
		m.tellBy(event.LevelRaised, strconv.FormatUint(uint64(c.Level), 10), c.By)
	}
	return Result{}
}

// Node returns the record of the node; ok is false if it is unknown.
func (m *Machine) Node(uuid string) (n record.NodeRecord, ok bool) {
	at, known := findNode(m, uuid)
	if !known {
		return record.NodeRecord{}, false
	}
	return m.nodes[at], true
}

// Nodes returns the node records, sorted by UUID. The caller owns the slice.
func (m *Machine) Nodes() []record.NodeRecord { return slices.Clone(m.nodes) }

func findNode(m *Machine, uuid string) (at int, known bool) {
	return slices.BinarySearchFunc(m.nodes, uuid, func(n record.NodeRecord, uuid string) int {
		return strings.Compare(n.UUID, uuid)
	})
}

// JoinTokens returns the tokens that have not expired, oldest first. The slice is never
// changed.
func (m *Machine) JoinTokens() []*record.JoinToken { return m.header.JoinTokens }

// setJoinToken creates a token. A repeat changes nothing.
func setJoinToken(m *Machine, c command.SetJoinToken) Result {
	now, tokens := m.header.Stamp.T, m.header.JoinTokens
	if at := findJoinToken(m, c.Hash); at >= 0 {
		return Result{JoinToken: tokens[at], Repeated: true}
	}
	if len(c.Hash) != sha256.Size || c.Uses < 1 || c.Uses > record.JoinTokenUsesMax || c.LifeMS < 1 || c.LifeMS > record.JoinTokenLifeMax || len(tokens) >= record.JoinTokensMax {
		return Result{Code: CodeMembershipRefused}
	}
	t := &record.JoinToken{Hash: c.Hash, CreatedAt: now, ExpiresAt: now + c.LifeMS, Uses: c.Uses}
	m.header.JoinTokens = append(slices.Clone(tokens), t)
	m.tellBy(event.JoinTokenMade, t.ID()+" for "+strconv.Itoa(int(t.Uses))+", "+strconv.FormatInt(c.LifeMS/1000, 10)+" s", c.By)
	return Result{JoinToken: t}
}

// deleteJoinToken revokes a token. Nodes that have used it stay members.
func deleteJoinToken(m *Machine, c command.DeleteJoinToken) Result {
	at := slices.IndexFunc(m.header.JoinTokens, func(t *record.JoinToken) bool { return t.ID() == c.ID })
	if at < 0 {
		return Result{Code: CodeMembershipRefused}
	}
	dropJoinToken(m, at)
	m.tellBy(event.JoinTokenRevoked, c.ID, c.By)
	return Result{}
}

// useJoinToken counts a node that joins with the token. The same node counts once.
func useJoinToken(m *Machine, c command.UseJoinToken) Result {
	at := findJoinToken(m, c.Hash)
	if at < 0 || c.UUID == "" {
		return Result{Code: CodeMembershipRefused}
	}
	t := *m.header.JoinTokens[at]
	switch {
	case t.ExpiresAt <= m.header.Stamp.T:
		return Result{Code: CodeMembershipRefused}
	case slices.Contains(t.UsedBy, c.UUID):
		return Result{Repeated: true}
	case len(t.UsedBy) >= int(t.Uses):
		return Result{Code: CodeMembershipRefused}
	}
	t.UsedBy = append(slices.Clone(t.UsedBy), c.UUID)
	tokens := slices.Clone(m.header.JoinTokens)
	tokens[at] = &t
	m.header.JoinTokens = tokens
	m.tellAct(event.JoinTokenUsed, t.ID()+" by node "+event.Cut(c.NodeID, event.NameMax)+", "+event.Cut(c.UUID, event.NameMax))
	return Result{}
}

// expireJoinTokens removes the tokens whose time has come.
func expireJoinTokens(m *Machine) {
	for at := len(m.header.JoinTokens) - 1; at >= 0; at-- {
		if t := m.header.JoinTokens[at]; t.ExpiresAt <= m.header.Stamp.T {
			dropJoinToken(m, at)
			m.tellAct(event.JoinTokenExpired, t.ID())
		}
	}
}

// nextJoinTokenEnd returns when the first token expires, by T; ok is false if there are no
// tokens.
func nextJoinTokenEnd(m *Machine) (t int64, ok bool) {
	for _, token := range m.header.JoinTokens {
		if !ok || token.ExpiresAt < t {
			t, ok = token.ExpiresAt, true
		}
	}
	return t, ok
}

func dropJoinToken(m *Machine, at int) {
	m.header.JoinTokens = slices.Delete(slices.Clone(m.header.JoinTokens), at, at+1)
}

// findJoinToken returns the index of the token with the hash, or -1.
func findJoinToken(m *Machine, hash []byte) int {
	return slices.IndexFunc(m.header.JoinTokens, func(t *record.JoinToken) bool { return bytes.Equal(t.Hash, hash) })
}

// PageSecret returns the secret with which nodes verify logins to the page, or nil before
// it is set. Backups do not contain it, and a restore clears it. It never changes.
func (m *Machine) PageSecret() []byte { return m.header.PageSecret }

func setPageSecret(m *Machine, c command.SetPageSecret) Result {
	switch {
	case len(c.Secret) != command.PageSecretBytes:
		return Result{Code: CodeInvalidRequest}
	case m.header.PageSecret != nil:
		return Result{Repeated: true}
	}
	m.header.PageSecret = slices.Clone(c.Secret)
	return Result{}
}
