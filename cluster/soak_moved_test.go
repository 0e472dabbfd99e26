package cluster

import "slices"

// checkMoved stops all nodes and starts most or all of them at new addresses, each with the
// new addresses of all, or of one. They have to find each other, serve within the usual
// time after a fault, and learn the new addresses.
func (c *soakCluster) checkMoved() {
	order := slices.Clone(c.members)
	c.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	half := len(order) / 2
	for i, m := range order {
		c.stop(m, 0)
		if i <= half+c.random.IntN(half+1) {
			m.host += "-moved"
		}
	}
	var hosts []string
	for _, m := range order {
		hosts = append(hosts, m.host)
	}
	told := hosts
	if c.random.IntN(2) == 0 {
		told = hosts[:1]
	}
	c.log.event("the nodes are at %v now, and told of %v", hosts, told)
	for _, m := range order {
		m.told = slices.DeleteFunc(slices.Clone(told), func(host string) bool { return host == m.host })
		c.start(m)
	}
	if took, ok := c.soakWait(soakProgressMax, c.anybodyServes); !ok {
		c.fail("nobody has served for %s since nodes moved to %v", took, hosts)
	}
	if took, ok := c.soakWait(soakLevelMax, func() bool { return c.allKnow(hosts) }); !ok {
		c.fail("%s after they moved not all nodes know that they are at %v", took, hosts)
	}
	c.checkSame()
}

// allKnow reports whether the configurations of all nodes have exactly these addresses.
func (c *soakCluster) allKnow(hosts []string) bool {
	for _, m := range c.members {
		for _, s := range m.running().servers() {
			if !slices.Contains(hosts, string(s.Address)) {
				return false
			}
		}
	}
	return true
}
