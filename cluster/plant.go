//go:build !plant

package cluster

import "github.com/claimq/claimq/fsm"

// plantDropWrite is true in builds with the tag plant: then the node lies, so
// that a checker can be shown to notice.
const plantDropWrite = false

func (n *Node) dropWrite(fsm.Submit) (fsm.Proposed, bool) { return fsm.Proposed{}, false }
