package peer

import (
	"testing"

	"github.com/hashicorp/raft"
)

// A node is dialed at its last reported address, and at the one in the configuration if it
// is not there; another node at either address is not accepted in its place.
func TestRaftLayer_dialsWhereTheNodeIs(t *testing.T) {
	t.Parallel()
	here := openTestPort(t, "n2", func(c *Config) {})
	other := openTestPort(t, "n3", func(c *Config) {})
	recorded := here.Addr()
	port := openTestPort(t, "n1", func(c *Config) {
		c.TargetUUID = func(string) string { return here.cfg.Self().UUID }
	})
	layer := port.StreamLayer()
	t.Cleanup(func() { _ = layer.Close() })
	closed := openTestPort(t, "n4")
	gone := closed.Addr()
	_ = closed.Close()
	uuid := here.cfg.Self().UUID
	for _, c := range []struct {
		said, recorded string
		reached        bool
	}{
		{"", recorded, true},
		{recorded, gone, true},
		{recorded, other.Addr(), true},
		{gone, recorded, true},
		{other.Addr(), recorded, true},
		{gone, other.Addr(), false},
	} {
		port.whereabouts = Whereabouts{}
		port.whereabouts.met(uuid, c.said)
		conn, err := layer.Dial(raft.ServerAddress(c.recorded), testWait)
		if (err == nil) != c.reached {
			t.Errorf("said to be at %q, recorded at %q: %v", c.said, c.recorded, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
