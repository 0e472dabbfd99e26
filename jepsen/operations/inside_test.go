package operations

import "testing"

// A restore whose leader was killed must be there as a whole or not at all, the same on
// every node.
func TestWholeOrNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts []int
		ok     bool
	}{
		{[]int{0, 0, 0}, true},
		{[]int{300, 300, 300}, true},
		{[]int{300, 0, 300}, false},
		{[]int{0, 300, 300}, false},
		{[]int{299, 299, 299}, false},
	} {
		if err := wholeOrNothing(c.counts, 300); (err == nil) != c.ok {
			t.Errorf("%v of 300: %v", c.counts, err)
		}
	}
}
