package fsm

// levelLife is the feature level of schedules, retention, limits, groups and
// batches of tasks: below it Apply does nothing of that.
const levelLife = 2

// levelSight is the feature level of the trail, schedules of their own and
// actions on many tasks: below it Apply keeps no trail.
const levelSight = 3

// levelSteps is the feature level of parents with steps and of their
// finalization.
const levelSteps = 4

// levelActs is the feature level at which the trail tells of operators' acts that
// change nothing in the state, and who did what, and at which a restore goes through
// the log, and that of join tokens and the page's secret.
const levelActs = 5

// LevelOf returns the feature level that the cluster must have reached before
// the command may be proposed: below it, there may be a node that does not
// know the command, or a field of it, and would stop at it.
func LevelOf(c Command) uint32 {
	level := c.kind().row().level
	if l, ok := c.(later); ok {
		level = max(level, l.needs())
	}
	return level
}

// needsBy returns the feature level that knows who gave the command, 0 if nobody is
// named.
func needsBy(by string) uint32 {
	if by != "" {
		return levelActs
	}
	return 0
}
