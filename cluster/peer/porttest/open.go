// Package porttest opens peer ports without a node, for tests.
package porttest

import (
	"sync"
	"testing"

	"github.com/claimq/claimq/cluster/nodekey"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/peertest"
	"github.com/claimq/claimq/internal/testwait"
)

// portUUIDs has the identities of the ports opened by Open, by address.
var portUUIDs sync.Map

// Open opens a port for the node of that name on a free loopback port, without a node. It
// finds the others that were opened in this way.
func Open(t *testing.T, nodeID string, change ...func(*peer.Config)) *peer.Port {
	t.Helper()
	cfg := peer.Config{
		ListenAddr: "127.0.0.1:0",
		JoinKeys:   func() peer.JoinKeys { return peer.JoinKeys{peertest.JoinKey()} },
		Self: func() peer.Hello {
			return peer.Hello{
				ClusterID: "c1", UUID: peertest.UUID(nodeID), NodeID: nodeID, FeatureLevel: 1, Version: "v0.1.0",
				Key: nodekey.Encode(nodekey.Public(peertest.Signer(nodeID))),
			}
		},
		Signer: peertest.Signer(nodeID),
		TargetUUID: func(addr string) string {
			uuid, _ := portUUIDs.Load(addr)
			text, _ := uuid.(string)
			return text
		},
		HandshakeTimeout: testwait.Patience,
	}
	for _, c := range change {
		c(&cfg)
	}
	p, err := peer.Listen(cfg)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	portUUIDs.Store(p.Addr(), cfg.Self().UUID)
	t.Cleanup(func() { _ = p.Close() })
	return p
}
