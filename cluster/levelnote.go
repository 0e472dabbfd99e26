package cluster

import (
	"context"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

// levelNoteInterval is how often a node looks whether its cluster's feature level
// has risen.
const levelNoteInterval = time.Second

// noteLevels keeps the data folder's format up with the feature level, also at the
// end: a binary that knows less then refuses the folder at once, where it would
// else find the entry that it cannot apply when it is told that it is committed.
func (n *Node) noteLevels(ctx context.Context) {
	for ok := true; ok; {
		ok = pause.For(ctx, levelNoteInterval)
		if err := n.dir.SetLevel(n.fsm.level.Load()); err != nil {
			n.logger.Warn("the data folder's format is behind the feature level, trying again", "error", err)
		}
	}
}
