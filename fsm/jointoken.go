package fsm

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// JoinTokens returns those that have not expired, the oldest first. The slice is
// never changed.
func (m *Machine) JoinTokens() []*record.JoinToken { return m.header.JoinTokens }

// setJoinToken makes a token. A repeat changes nothing.
func (m *Machine) setJoinToken(c command.SetJoinToken) Result {
	now, tokens := m.header.Stamp.T, m.header.JoinTokens
	if at := m.findJoinToken(c.Hash); at >= 0 {
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

// deleteJoinToken revokes a token. Nodes that came by it stay members.
func (m *Machine) deleteJoinToken(c command.DeleteJoinToken) Result {
	at := slices.IndexFunc(m.header.JoinTokens, func(t *record.JoinToken) bool { return t.ID() == c.ID })
	if at < 0 {
		return Result{Code: CodeMembershipRefused}
	}
	m.dropJoinToken(at)
	m.tellBy(event.JoinTokenRevoked, c.ID, c.By)
	return Result{}
}

// useJoinToken counts that a node comes by the token. A repeat of the same node
// counts once.
func (m *Machine) useJoinToken(c command.UseJoinToken) Result {
	at := m.findJoinToken(c.Hash)
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

// expireJoinTokens forgets the tokens whose time has come.
func (m *Machine) expireJoinTokens() {
	for at := len(m.header.JoinTokens) - 1; at >= 0; at-- {
		if t := m.header.JoinTokens[at]; t.ExpiresAt <= m.header.Stamp.T {
			m.dropJoinToken(at)
			m.tellAct(event.JoinTokenExpired, t.ID())
		}
	}
}

// nextJoinTokenEnd returns when the first token expires, by T; ok false if there is
// none.
func (m *saved) nextJoinTokenEnd() (t int64, ok bool) {
	for _, token := range m.header.JoinTokens {
		if !ok || token.ExpiresAt < t {
			t, ok = token.ExpiresAt, true
		}
	}
	return t, ok
}

func (m *saved) dropJoinToken(at int) {
	m.header.JoinTokens = slices.Delete(slices.Clone(m.header.JoinTokens), at, at+1)
}

// findJoinToken returns the place of the token with that hash, -1 if there is none.
func (m *saved) findJoinToken(hash []byte) int {
	return slices.IndexFunc(m.header.JoinTokens, func(t *record.JoinToken) bool { return bytes.Equal(t.Hash, hash) })
}
