package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// tokenMachine applies commands about join tokens, a millisecond apart.
type tokenMachine struct {
	t *testing.T
	m *Machine
	s record.Stamp
}

func newTokenMachine(t *testing.T) *tokenMachine {
	h := &tokenMachine{t: t, m: New(), s: record.Stamp{U: 1, T: 1_780_000_000_000}}
	h.do(command.SetLevel{Level: record.FeatureLevel}, "")
	return h
}

// do applies the command, which must be answered with the code.
func (h *tokenMachine) do(c command.Command, want Code) Result {
	h.t.Helper()
	a, err := h.m.Apply(h.m.Index()+1, command.AppendEntry(nil, h.s, c))
	if err != nil {
		h.t.Fatal(err)
	}
	h.s.T++
	if got := a.Results[0]; got.Code != want {
		h.t.Fatalf("%+v: code %q, want %q", c, got.Code, want)
	}
	return a.Results[0]
}

// told returns what the trail tells of join tokens.
func (h *tokenMachine) told() (told []string) {
	for _, e := range h.m.Events(event.Query{Limit: event.LimitMax}).Events {
		if e.Kind >= event.JoinTokenMade {
			told = append(told, e.Kind.String()+": "+e.Message)
		}
	}
	return told
}

func TestJoinToken_LetsSoManyNodesInUntilItEnds(t *testing.T) {
	t.Parallel()
	h := newTokenMachine(t)
	set := command.SetJoinToken{Hash: tokenHash("one"), LifeMS: 60_000, Uses: 2, By: "ann"}
	token := h.do(set, "").JoinToken
	if again := h.do(set, ""); !again.Repeated || again.JoinToken != token {
		t.Fatalf("made again: %+v", again)
	}
	use := func(token, node string) command.UseJoinToken {
		return command.UseJoinToken{Hash: tokenHash(token), UUID: "uuid-" + node, NodeID: node}
	}
	h.do(use("another", "n4"), CodeMembershipRefused)
	h.do(use("one", "n4"), "")
	h.do(use("one", "n5"), "")
	h.do(use("one", "n6"), CodeMembershipRefused)
	if r := h.do(use("one", "n4"), ""); !r.Repeated {
		t.Errorf("a node that came by it counts again: %+v", r)
	}
	if end, ok := h.m.NextDue(); !ok || end != token.ExpiresAt {
		t.Errorf("NextDue says %d, %v, want the token's end, %d", end, ok, token.ExpiresAt)
	}

	h.s.T = token.ExpiresAt
	h.do(use("one", "n4"), CodeMembershipRefused) // no tick has come yet
	h.do(command.Tick{}, "")
	if left := h.m.JoinTokens(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	id := token.ID()
	want := []string{
		"join_token_made: " + id + " for 2, 60 s by ann",
		"join_token_used: " + id + " by node n4, uuid-n4",
		"join_token_used: " + id + " by node n5, uuid-n5",
		"join_token_expired: " + id,
	}
	if diff := cmp.Diff(want, h.told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestJoinToken_IsRevoked(t *testing.T) {
	t.Parallel()
	h := newTokenMachine(t)
	id := h.do(command.SetJoinToken{Hash: tokenHash("one"), LifeMS: 60_000, Uses: 1}, "").JoinToken.ID()
	h.do(command.DeleteJoinToken{ID: "000000000000"}, CodeMembershipRefused)
	h.do(command.DeleteJoinToken{ID: id, By: "ann"}, "")
	h.do(command.UseJoinToken{Hash: tokenHash("one"), UUID: "u"}, CodeMembershipRefused)
	if told := h.told(); told[len(told)-1] != "join_token_revoked: "+id+" by ann" {
		t.Errorf("told: %v", told)
	}
}

func TestJoinToken_IsBounded(t *testing.T) {
	t.Parallel()
	h := newTokenMachine(t)
	good := command.SetJoinToken{Hash: tokenHash("one"), LifeMS: record.JoinTokenLifeMax, Uses: record.JoinTokenUsesMax}
	for _, bad := range []command.SetJoinToken{
		{LifeMS: good.LifeMS, Uses: good.Uses},
		{Hash: good.Hash[:31], LifeMS: good.LifeMS, Uses: good.Uses},
		{Hash: good.Hash, LifeMS: good.LifeMS + 1, Uses: good.Uses},
		{Hash: good.Hash, Uses: good.Uses},
		{Hash: good.Hash, LifeMS: good.LifeMS, Uses: good.Uses + 1},
		{Hash: good.Hash, LifeMS: good.LifeMS},
	} {
		h.do(bad, CodeMembershipRefused)
	}
	for i := range record.JoinTokensMax {
		good.Hash = tokenHash(fmt.Sprint(i))
		h.do(good, "")
	}
	good.Hash = tokenHash("one more")
	h.do(good, CodeMembershipRefused)
}

// A backup cannot bring back a token that was revoked since, and a restored snapshot has
// the tokens that were captured.
func TestJoinToken_IsSavedAndNotRestoredOfABackup(t *testing.T) {
	t.Parallel()
	h := newTokenMachine(t)
	h.do(command.SetJoinToken{Hash: tokenHash("one"), LifeMS: 60_000, Uses: 2}, "")
	h.do(command.UseJoinToken{Hash: tokenHash("one"), UUID: "u", NodeID: "n"}, "")
	m, err := ReadSnapshot(bytes.NewReader(snapshotOf(t, h.m)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h.m.JoinTokens(), m.JoinTokens()); diff != "" || len(m.JoinTokens()) != 1 {
		t.Errorf("restored (-saved +restored):\n%s", diff)
	}

	h.do(command.Submit{Tasks: []record.NewTask{{Type: "mail"}}}, "")
	if got := restoredMachine(t, h.m).JoinTokens(); len(got) != 0 {
		t.Errorf("a backup brought %+v", got)
	}
	if err := h.m.JumpCounters(h.s.T); err != nil || len(h.m.JoinTokens()) != 0 {
		t.Errorf("a recovered cluster has %+v: %v", h.m.JoinTokens(), err)
	}
}
