package cluster

import (
	"context"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/fsm"
)

// Whoever may talk to the peer port, but is no member, passes nothing on and
// changes nothing: an outsider with the join key, a member's identity under
// another name, a node that was removed.
func TestNode_strangersPassNothingOn(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	cfg := testConfig(t, "n1", t.TempDir(), addrs[0])
	cfg.Bootstrap = true
	n1 := openNode(t, cfg)
	n1.SetForwardHandler(func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("done") })
	cfg = testConfig(t, "n2", t.TempDir(), addrs[1])
	cfg.Join = []string{addrs[0]}
	n2 := openNode(t, cfg)
	records := func() (count int) {
		n1.fsm.read(func(m *fsm.Machine) { count = len(m.Nodes()) })
		return count
	}
	eventually(t, "both nodes are recorded", func() bool { return records() == 2 })

	port := func(uuid, nodeID string) *peerPort {
		return openTestPort(t, nodeID, func(cfg *peerConfig) {
			cfg.JoinKey, cfg.Certificate = nil, nil
			cfg.Self = func() hello {
				return hello{ClusterID: n1.dir.Identity().ClusterID, UUID: uuid, NodeID: nodeID, FeatureLevel: fsm.FeatureLevel}
			}
		})
	}
	pass := func(p *peerPort, waits bool) string {
		t.Helper()
		req, resp := newSubmit(`{}`)
		var err error
		if waits {
			err = p.ForwardWaiting(t.Context(), addrs[0], n1.uuid, req, resp)
		} else {
			err = p.Forward(t.Context(), addrs[0], req, resp)
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(resp.Body())
	}
	refused := func(what string, p *peerPort) {
		t.Helper()
		for _, waits := range []bool{false, true} {
			if got := pass(p, waits); !strings.Contains(got, `"no_leader"`) || !strings.Contains(got, "not a member of the cluster") {
				t.Errorf("%s, waiting %v: answered %s", what, waits, got)
			}
		}
		for _, call := range []string{callMember, callTell, callDiffer, callSnapshot} {
			_, err := p.Call(t.Context(), addrs[0], call, []byte(`{"act":"remove","node_id":"n2"}`))
			if err == nil || !strings.Contains(err.Error(), "not a member of the cluster") {
				t.Errorf("%s, call %s: %v", what, call, err)
			}
		}
	}
	refused("an outsider", port("00000000-0000-4000-8000-000000000009", "n9"))
	refused("a member's identity under another name", port(n2.uuid, "n9"))
	member := port(n2.uuid, "n2")
	for _, waits := range []bool{false, true} {
		if got := pass(member, waits); got != "done" {
			t.Errorf("a member, waiting %v: answered %s", waits, got)
		}
	}
	eventually(t, "n2 is removed", func() bool { return n1.RemoveNode(context.Background(), "n2") == nil })
	refused("a removed member, over its old connections", member)
}
