package config

// nearest returns the element of known that name is probably a misspelling of, or "": at most two letters, and a
// third of the name, may be wrong, missing, extra or swapped.
func nearest(name string, known []string) string {
	best, least := "", min(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distanceBytesMax bounds the names that are compared, because a longer one is not a misspelling.
const distanceBytesMax = 64

// distance returns how many bytes must be inserted, removed, changed, or swapped with the next one to turn a into b.
func distance(a, b string) int {
	if len(a) > distanceBytesMax || len(b) > distanceBytesMax {
		return distanceBytesMax
	}
	// rows[i%3][j] is the distance of a's first i bytes to b's first j.
	var rows [3][distanceBytesMax + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, above2 := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(above[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], above2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
