package jsonout

import "unicode/utf8"

// Cut returns at most most bytes of the beginning of text, without cutting a character.
func Cut[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
