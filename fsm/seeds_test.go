package fsm

import "github.com/claimq/claimq/internal/proof"

// seeds returns how many of all seeds a test tries: a quarter by default.
func seeds(all uint64) uint64 { return proof.Count((all+3)/4, all) }
