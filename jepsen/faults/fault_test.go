package faults

import "testing"

// A fault whose recovery needs a working cluster recovers last, even in a combination.
func TestTogether_order(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"member-removed+net-loss+power-one+snapshot-kill-one": {"power-one+snapshot-kill-one", "member-removed+net-loss"},
		"disk-rot-one+power-all+kill-one":                     {"kill-one", "power-all", "disk-rot-one"},
	} {
		list, err := ByName(names...)
		if err != nil {
			t.Fatal(err)
		}
		if got := Together(list...).Name(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
