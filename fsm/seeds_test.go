package fsm

import "testing"

// seeds returns how many of all seeds a test tries: a quarter with -short.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return (all + 3) / 4
	}
	return all
}
