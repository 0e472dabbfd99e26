package jsonout

import "strings"

// Shorten limits how much an answer repeats of a name that the client chose.
func Shorten(name string) string {
	const most = 128
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}
