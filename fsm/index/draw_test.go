package index

import "testing"

// TestDice_AreSpread ensures that neighbouring entries, commands and picks
// take tasks from everywhere.
func TestDice_AreSpread(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func(i int) uint64{
		"index": func(i int) uint64 { return hashOfPick(uint64(1000+i), 0, 0) },
		"place": func(i int) uint64 { return hashOfPick(1000, i, 0) },
		"pick":  func(i int) uint64 { return hashOfPick(1000, 0, i) },
	} {
		var highest, lowest, steps [16]int
		for i := range 1600 {
			h := hash(i)
			highest[h>>60]++
			lowest[h&15]++
			steps[(h-hash(i+1))>>60]++
		}
		for i := range 16 {
			for _, n := range []int{highest[i], lowest[i], steps[i]} {
				if n < 60 || n > 140 { // 100, give or take four deviations
					t.Errorf("%s: %d of 1600 in part %d", name, n, i)
				}
			}
		}
	}
}
