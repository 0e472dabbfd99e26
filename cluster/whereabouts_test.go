package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Nodes that all have another peer address after a restart find each other with their new
// flags, elect a leader, and let it record the new addresses.
func TestOpen_allHaveMoved(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]func(cfg *Config, addrs []string){
		"each is told of all": func(cfg *Config, addrs []string) {
			cfg.InitialCluster = map[string]string{}
			for i, addr := range addrs {
				cfg.InitialCluster[fmt.Sprint("n", i+1)] = addr
			}
		},
		"two are told of one": func(cfg *Config, addrs []string) {
			cfg.InitialCluster = nil
			if cfg.PeerAddr != addrs[0] {
				cfg.Join = addrs[:1]
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newBackupCluster(t)
			before := c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "a"}}})
			for _, n := range c.nodes {
				closeNode(t, n)
			}
			addrs := freeAddrs(t, len(c.cfgs))
			for i := range c.cfgs {
				cfg := &c.cfgs[i]
				cfg.PeerAddr, cfg.Registerer = addrs[i], testConfig(t, "", "", "").Registerer
				told(cfg, addrs)
			}
			c.open()
			after := c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "a"}}})
			if after.Index <= before.Index {
				t.Errorf("entry %d after entry %d", after.Index, before.Index)
			}
			eventually(t, "all to have all new addresses", func() bool {
				for _, n := range c.nodes {
					for _, s := range n.servers() {
						if !slices.Contains(addrs, string(s.Address)) {
							return false
						}
					}
				}
				return true
			})
			c.ensureSame()
		})
	}
}
