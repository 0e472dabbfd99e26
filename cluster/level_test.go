package cluster

import (
	"os"
	"testing"

	"github.com/claimq/claimq/fsm/record"
	"github.com/claimq/claimq/internal/testwait"
)

// The tests of this package know one feature level more than the product has, so that a cluster
// can be upgraded.
func TestMain(m *testing.M) {
	record.FeatureLevel++
	testwait.Together(4) // clusters whose nodes wait for each other
	os.Exit(m.Run())
}
