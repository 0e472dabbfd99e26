package cluster

import "github.com/claimq/claimq/fsm"

// boundTrail gives the trail the bounds that this node is configured with, where
// the cluster has others. One that is not configured stays as it is.
func (l *leadership) boundTrail() {
	cfg := &l.node.cfg
	if cfg.TrailBytes == 0 && cfg.TrailAge == 0 {
		return
	}
	var has fsm.SetTrail
	l.read(func(m *fsm.Machine) { has = m.TrailBounds() })
	want := has
	if cfg.TrailBytes != 0 {
		want.Bytes = cfg.TrailBytes
	}
	if cfg.TrailAge != 0 {
		want.AgeMS = cfg.TrailAge.Milliseconds()
	}
	if want == has || l.node.checkLevel(want) != nil {
		return
	}
	if err := l.propose(want); err != nil && l.ctx.Err() == nil {
		l.node.logger.Warn("bounds of the trail not written, trying again", "error", err)
	}
}
