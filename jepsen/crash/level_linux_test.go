package crash

import (
	"os"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// The tests of this package know one feature level more than the product has, so that a cluster
// can be upgraded, and judged then.
func TestMain(m *testing.M) {
	record.FeatureLevel++
	os.Exit(m.Run())
}
