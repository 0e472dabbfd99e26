package fsm

// ReachOf returns how many tasks a command may change, of those that a batch may
// hold and of a batch, which is the sum of its ops: each as often as an op names it.
// Of any other it is 1. What a batch and an entry change is bounded by it.
func (m *Machine) ReachOf(cmd Command) int {
	switch c := cmd.(type) {
	case Submit:
		return CountTasks(c.Tasks)
	case ClaimNext:
		return int(c.Limit)
	case Complete:
		n := m.Reach(c.ID) + CountTasks(c.Submit)
		if c.Claim != nil {
			n += int(c.Claim.Limit)
		}
		return n
	case Fail:
		return m.Reach(c.ID)
	case Release:
		return m.Reach(c.ID)
	case Retry:
		return m.Reach(c.ID)
	case Cancel:
		return m.Reach(c.ID)
	case Delete:
		return m.Reach(c.ID)
	case Batch:
		n := 0
		for _, op := range c.Ops {
			n += m.ReachOf(op)
		}
		return n
	}
	return 1
}
