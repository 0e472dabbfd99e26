package cluster

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/cluster/peer/porttest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// attacked is a cluster that strangers try to get into.
type attacked struct {
	addrs []string
	n1    *Node // leads
	n2    *Node
}

// openAttacked starts a cluster of that many nodes, at least two.
func openAttacked(t *testing.T, count int, change ...func(*Config)) *attacked {
	t.Helper()
	a := &attacked{addrs: freeAddrs(t, count)}
	open := func(nodeID, addr string, way func(*Config)) *Node {
		cfg := testConfig(t, nodeID, t.TempDir(), addr)
		way(&cfg)
		for _, c := range change {
			c(&cfg)
		}
		return openNode(t, cfg)
	}
	a.n1 = open("n1", a.addrs[0], func(c *Config) { c.Bootstrap = true })
	a.n1.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") })
	token := joinTokenOf(t, a.n1)
	join := func(c *Config) { c.Join, c.JoinToken = []string{a.addrs[0]}, token }
	a.n2 = open("n2", a.addrs[1], join)
	for i, addr := range a.addrs[2:] {
		open(fmt.Sprintf("n%d", i+3), addr, join)
	}
	eventually(t, "all nodes are recorded", func() bool { return a.records() == count })
	return a
}

func (a *attacked) records() (count int) {
	a.n1.fsm.Read(func(m *fsm.Machine) { count = len(m.Nodes()) })
	return count
}

// port returns the port of a stranger with another key that claims to be the node uuid
// of that name, and knows the members. It has the join key, if there is one.
func (a *attacked) port(t *testing.T, signer ed25519.PrivateKey, uuid, nodeID string, change ...func(*peer.Config)) *peer.Port {
	return porttest.Open(t, nodeID, append([]func(*peer.Config){func(cfg *peer.Config) {
		cfg.JoinKeys, cfg.Certificate = nil, nil
		cfg.Signer = signer
		cfg.TargetUUID = func(addr string) string {
			if addr == a.addrs[1] {
				return a.n2.uuid
			}
			return a.n1.uuid
		}
		cfg.Self = func() peer.Hello {
			return peer.Hello{ClusterID: a.n1.dir.Identity().ClusterID, UUID: uuid, NodeID: nodeID, FeatureLevel: fsm.FeatureLevel()}
		}
	}}, change...)...)
}

// pass returns n1's answer to a request that p forwards.
func (a *attacked) pass(t *testing.T, p *peer.Port) string {
	t.Helper()
	req, resp := peertest.Submit(`{}`)
	if _, err := p.Forward(t.Context(), a.addrs[0], a.n1.uuid, nodes.Passing{}, req, resp); err != nil {
		return err.Error()
	}
	return string(resp.Body())
}

// membersCalls returns the calls that n1 only answers to members.
func (a *attacked) membersCalls() []string {
	calls := []string{callStart}
	for name := range a.n1.calls {
		if name != peer.CallWho && name != peer.CallStanding {
			calls = append(calls, name)
		}
	}
	slices.Sort(calls)
	return calls
}

// refused checks that nothing is accepted from p, which gets the reason why.
func (a *attacked) refused(t *testing.T, what string, p *peer.Port, why string) {
	t.Helper()
	if got := a.pass(t, p); !strings.Contains(got, why) {
		t.Errorf("%s: answered %s", what, got)
	}
	for _, call := range a.membersCalls() {
		if _, err := p.Call(t.Context(), a.addrs[0], call, []byte(`{"act":"remove","node_id":"n2"}`)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s, call %s: %v", what, call, err)
		}
	}
	conn, err := p.StreamLayer().Dial(raft.ServerAddress(a.addrs[0]), testwait.Patience)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s, Raft: %v", what, err)
	}
}

// A caller of the peer port that is no member passes nothing on, changes nothing and learns
// nothing: neither an outsider with the join key, nor one that claims to be a member, nor a
// removed node.
func TestNode_strangersGetNothing(t *testing.T) {
	t.Parallel()
	a := openAttacked(t, 2)
	const notMember, notProven = "is not a member of the cluster", "shows another key than that of identity"
	outsider := peertest.Signer("n9")
	a.refused(t, "an outsider", a.port(t, outsider, peertest.UUID("n9"), "n9"), notMember)
	for _, victim := range []*Node{a.n1, a.n2} {
		claims := a.port(t, outsider, victim.uuid, victim.cfg.NodeID)
		for _, call := range append(a.membersCalls(), peer.CallStanding, peer.CallJoin, peer.CallWho, peer.CallAdmitted) {
			if _, err := claims.Call(t.Context(), a.addrs[0], call, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), notProven) {
				t.Errorf("one that says that it is %s, call %s: %v", victim.cfg.NodeID, call, err)
			}
		}
	}
	a.refused(t, "one that says that it is n2", a.port(t, outsider, a.n2.uuid, "n2"), notProven)
	if where := a.n1.peers.Whereabouts().Of(peertest.UUID("n9")); where != "" {
		t.Errorf("the outsider is remembered to be at %s", where)
	}

	member := a.port(t, a.n2.dir.Key(), a.n2.uuid, "n2")
	if got := a.pass(t, member); got != "done" {
		t.Errorf("a member: answered %s", got)
	}
	conn, err := member.StreamLayer().Dial(raft.ServerAddress(a.addrs[0]), testwait.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := member.Call(t.Context(), a.addrs[0], callStatus, []byte(`{}`)); err != nil {
		t.Fatalf("a member, call %s: %v", callStatus, err)
	}
	eventually(t, "n2 is removed", func() bool { return a.n1.RemoveNode(context.Background(), "n2", nodes.Operator{}) == nil })
	if got := a.pass(t, member); !strings.Contains(got, `"no_leader"`) || !strings.Contains(got, notMember) {
		t.Errorf("a removed member, over its old connection: answered %s", got)
	}
	for _, call := range a.membersCalls() {
		var refused *peer.CallError // a new connection would be refused before any call
		if _, err := member.Call(t.Context(), a.addrs[0], call, []byte(`{}`)); !errors.As(err, &refused) || !strings.Contains(refused.Text, notMember) {
			t.Errorf("a removed member, over its old connection, call %s: %v", call, err)
		}
	}
	_ = conn.SetDeadline(time.Now().Add(testwait.Patience))
	for err = nil; err == nil; { // the first message after a while ends the connection
		_, err = conn.Write([]byte{0})
	}
	a.refused(t, "a removed member, over new ones", a.port(t, a.n2.dir.Key(), a.n2.uuid, "n2"), notMember)
}

// A stranger's questions are about itself: with another node's address it does not get that
// one's place, whether that is down or up.
func TestNode_placeOfAVoterThatIsDown(t *testing.T) {
	t.Parallel()
	a := openAttacked(t, 3)
	uuid := a.n2.uuid
	eventually(t, "all vote", func() bool { return len(a.n1.votersNow()) == 3 })
	stranger := a.port(t, peertest.Signer("n9"), peertest.UUID("n9"), "n9")
	stranger.Handle(peer.CallWho, func(context.Context, peer.Hello, []byte) ([]byte, error) {
		return json.Marshal(whoAnswer{Record: fsm.NodeRecord{UUID: uuid, NodeID: "n2", PeerAddr: stranger.Addr()}})
	})
	question, err := json.Marshal(standingQuestion{Record: fsm.NodeRecord{UUID: uuid, NodeID: "n2", PeerAddr: stranger.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := stranger.Call(t.Context(), a.addrs[0], peer.CallStanding, question); err == nil || !strings.Contains(err.Error(), "not about the node that asks") {
		t.Errorf("a question in n2's name was answered: %s, %v", answer, err)
	}
	// A member that leads the leader to a stranger's address does not get that one into
	// another's place either.
	member := a.port(t, a.n2.dir.Key(), uuid, "n2", func(c *peer.Config) { c.Advertise = stranger.Addr() })
	if err := a.n2.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// A leader that is not certain to lead, or whose membership is being changed, answers
	// with neither, and is asked again.
	eventually(t, "the leader takes it for a member", func() bool {
		answer, err := member.Call(t.Context(), a.addrs[0], peer.CallStanding, question)
		return err == nil && string(answer) == `{"member":true}`
	})
	for _, s := range a.n1.servers() {
		if string(s.Address) == stranger.Addr() {
			t.Errorf("the stranger has the place of %s", s.ID)
		}
	}
}

// A caller that asks wrongly is told so: it is no fault of the node that is asked.
func TestNode_wrongQuestions(t *testing.T) {
	t.Parallel()
	a := openAttacked(t, 2)
	waiting := porttest.Open(t, "n5")
	(&opening{peers: waiting, admitted: make(chan joining.Admission, 1)}).serveAdmission(compose(&core{uuid: peertest.UUID("n5")}))
	stranger, member := a.port(t, peertest.Signer("n9"), peertest.UUID("n9"), "n9"), a.port(t, a.n2.dir.Key(), a.n2.uuid, "n2")
	leader := porttest.Open(t, "n8")
	for _, c := range []struct {
		asker            *peer.Port
		addr, call, body string
		status           int
		want             string
	}{
		{stranger, a.addrs[0], peer.CallStanding, ``, 400, "the question is malformed: unexpected end of JSON"},
		{stranger, a.addrs[0], peer.CallStanding, `{"record":[]}`, 400, "the question is malformed"},
		{stranger, a.addrs[0], peer.CallStanding, `{}`, 400, "the question is not about the node that asks"},
		{leader, waiting.Addr(), peer.CallAdmitted, `[]`, 400, "the question is malformed"},
		{leader, waiting.Addr(), peer.CallAdmitted, `{}`, 400, "this admission is for another node"},
		{member, a.addrs[0], callStatus, `[]`, 400, "the question is malformed"},
		{member, a.addrs[0], callHint, `{"term":0}`, 500, "the hint is of term 0"},
	} {
		_, err := c.asker.Call(t.Context(), c.addr, c.call, []byte(c.body))
		var answer *peer.CallError
		if !errors.As(err, &answer) || answer.Status != c.status || !strings.Contains(answer.Text, c.want) {
			t.Errorf("%s %s: %v (%+v), want %d %q", c.call, c.body, err, answer, c.status, c.want)
		}
	}
}

// A certificate of the authority is not an identity: it must be for the recorded name, or
// the recorded address, of the node that the handshake proves.
func TestNode_strangersWithACertificate(t *testing.T) {
	t.Parallel()
	authority := certstest.NewAuthority(t, "nodes")
	a := openAttacked(t, 2, func(cfg *Config) {
		cfg.PeerCertificate = peertest.Certificate(t, authority, authority.Issue([]string{"127.0.0.1", cfg.NodeID}))
	})
	certificate := func(names ...string) func(*peer.Config) {
		return func(cfg *peer.Config) {
			cfg.Certificate = peertest.Certificate(t, authority, authority.Issue(names))
			cfg.Advertise = "n9.example:7401"
		}
	}
	own := certificate("n9", "n9.example")
	a.refused(t, "an outsider", a.port(t, peertest.Signer("n9"), peertest.UUID("n9"), "n9", own), "is not a member of the cluster")
	a.refused(t, "one that says that it is n2", a.port(t, peertest.Signer("n9"), a.n2.uuid, "n2", own), "shows another key")
	a.refused(t, "n2 with the certificate of another", a.port(t, a.n2.dir.Key(), a.n2.uuid, "n2", own), "neither for its node id")
	a.refused(t, "n2 under another name", a.port(t, a.n2.dir.Key(), a.n2.uuid, "n9", own), "neither for its node id")
	if got := a.pass(t, a.port(t, a.n2.dir.Key(), a.n2.uuid, "n2", certificate("n2"))); got != "done" {
		t.Errorf("n2 from another address: %s", got)
	}
}
