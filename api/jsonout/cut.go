package jsonout

import "unicode/utf8"

// Cut returns the first bytes of text, at most as many as most, and only whole
// characters.
func Cut[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
