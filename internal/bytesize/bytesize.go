// Package bytesize formats sizes for people, in the units of the configuration. Programs
// get exact numbers of bytes instead.
package bytesize

import "strconv"

// Text formats n bytes in at most 9 characters, such as 512 B, 1.5 KiB or 64 MiB.
func Text(n int64) string {
	value := float64(n)
	unit := "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1024, next
	}
	if value < 10 && unit != "B" {
		return strconv.FormatFloat(value, 'f', 1, 64) + " " + unit
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + " " + unit
}
