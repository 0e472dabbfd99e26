package jsonout

import "strings"

// Shorten bounds what an answer repeats of a name that the client made up.
func Shorten(name string) string {
	const most = 128
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}
