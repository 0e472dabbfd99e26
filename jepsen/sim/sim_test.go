package sim

import (
	"os"
	"strconv"
	"testing"
)

// A number of short seeds, on all that is in the tree.
func TestRun(t *testing.T) {
	seeds := uint64(1000)
	if n, err := strconv.ParseUint(os.Getenv("SIM_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	var out = t.Output()
	if err := Main(t.Context(), []string{"--seeds", strconv.FormatUint(seeds, 10), "--steps", "80"}, out); err != nil {
		t.Fatal(err)
	}
}
