package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
)

// A node that was down while another became a member, and the leader, accepts that one's
// messages, because a member that it knows vouches for it. It accepts no others'.
func TestNode_raftPeer_leaderThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 4)
	cfgs := make([]Config, len(addrs))
	nodes := make([]*Node, len(addrs))
	for i, addr := range addrs {
		cfgs[i] = testConfig(t, fmt.Sprintf("n%d", i+1), t.TempDir(), addr)
		if i == 0 {
			cfgs[i].Bootstrap = true
		} else {
			cfgs[i].Join = []string{addrs[0]}
		}
	}
	nodes[0] = openNode(t, cfgs[0])
	token := joinTokenOf(t, nodes[0])
	for i := range cfgs {
		cfgs[i].JoinToken = token
	}
	for i := 1; i < 3; i++ {
		nodes[i] = openNode(t, cfgs[i])
	}
	votes := func(count int) func() bool { return func() bool { return len(nodes[0].votersNow()) == count } }
	eventually(t, "three vote", votes(3))
	down := nodes[1]
	if err := down.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	nodes[3] = openNode(t, cfgs[3])
	eventually(t, "n4 votes", votes(4))
	eventually(t, "n4 leads", func() bool {
		if nodes[3].IsLeader() {
			return true
		}
		// Either may lead, if n4 was told to stand and has lost.
		for _, n := range []*Node{nodes[0], nodes[2]} {
			_, _ = n.Transfer(context.Background(), "n4")
		}
		return false
	})
	cfgs[1].Join, cfgs[1].Registerer = nil, testConfig(t, "n2", "", "").Registerer
	nodes[1] = openNode(t, cfgs[1])
	eventually(t, "n2 knows n4", func() bool { return nodes[1].known.isServer(nodes[3].uuid) })

	stranger := peer.Hello{UUID: peertest.UUID("n9"), NodeID: "n9"}
	for i, n := range nodes {
		if err := n.known.raftPeer(t.Context(), stranger, "10.0.0.9"); err == nil || !strings.Contains(err.Error(), "is not a member of the cluster") {
			t.Errorf("n%d takes a stranger's messages: %v", i+1, err)
		}
	}
	// No member vouches to a node that knows as much, because that would know better.
	if answer := vouched(t, nodes[0], nodes[3].uuid, nodes[0].known.logEnd()); answer.Member {
		t.Error("n1 vouches to one whose log is as long")
	}
	if answer := vouched(t, nodes[0], nodes[3].uuid, logPoint{}); !answer.Member {
		t.Error("n1 does not vouch for a member")
	}
	if answer := vouched(t, nodes[0], stranger.UUID, logPoint{}); answer.Member {
		t.Error("n1 vouches for a stranger")
	}
}

func vouched(t *testing.T, n *Node, uuid string, log logPoint) vouchAnswer {
	t.Helper()
	answer, err := ask[vouchAnswer](t.Context(), &core{call: func(ctx context.Context, _, name string, body []byte) ([]byte, error) {
		return n.Answer(ctx, name, body)
	}}, "", callVouch, vouchQuestion{UUID: uuid, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// A member's answer is valid for a while, a missing one for a shorter time, only one caller
// asks, and the number of remembered answers is bounded, in all and per host.
func TestVouches_confirm(t *testing.T) {
	t.Parallel()
	var v vouches
	asked := 0
	word := func(yes bool) func(context.Context, string) bool {
		return func(context.Context, string) bool { asked++; return yes }
	}
	if !v.confirm(t.Context(), "a", "h", word(true)) || !v.confirm(t.Context(), "a", "h", word(false)) || asked != 1 {
		t.Errorf("a word is not kept: asked %d times", asked)
	}
	if v.confirm(t.Context(), "b", "h", word(false)) || v.confirm(t.Context(), "b", "h", word(true)) || asked != 2 {
		t.Errorf("a missing word is not kept: asked %d times", asked)
	}
	for i := range 2 * vouchesPerHost {
		v.confirm(t.Context(), fmt.Sprint("of h ", i), "h", word(false))
	}
	if asked != vouchesPerHost {
		t.Errorf("asked %d times about nodes from one host", asked)
	}
	for i := range 2 * vouchesMax {
		v.confirm(t.Context(), fmt.Sprint(i), fmt.Sprint("h", i), word(false))
	}
	if asked != vouchesMax || len(v.byUUID) != vouchesMax {
		t.Errorf("asked %d times, %d are remembered", asked, len(v.byUUID))
	}
	for _, w := range v.byUUID {
		w.until = w.until.Add(-vouchedFor)
	}
	if v.confirm(t.Context(), "a", "h", word(false)) || asked != vouchesMax+1 {
		t.Errorf("an old word holds: asked %d times", asked)
	}
}

func TestLogPoint_after(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p, other logPoint
		want     bool
	}{
		{logPoint{2, 9}, logPoint{2, 9}, false},
		{logPoint{2, 10}, logPoint{2, 9}, true},
		{logPoint{3, 1}, logPoint{2, 9}, true},
		{logPoint{2, 10}, logPoint{3, 9}, false},
	} {
		if got := c.p.after(c.other); got != c.want {
			t.Errorf("%v after %v: %v", c.p, c.other, got)
		}
	}
}
