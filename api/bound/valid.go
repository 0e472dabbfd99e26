package bound

import "strconv"

// ParseInteger parses an integer from lo to hi, which are not negative. Only digits are accepted, without leading
// zeros.
func ParseInteger(text string, lo, hi int64) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && (text[0] > '0' || text == "0") && lo <= n && n <= hi
}

// ValidWorkerID reports whether b is 1 to 128 letters, digits, _ and -.
func ValidWorkerID[T ~string | ~[]byte](b T) bool {
	if len(b) == 0 || len(b) > NameMax {
		return false
	}
	for i := range len(b) {
		if c := b[i]; !alphanumeric(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// ValidTaskType reports whether b is 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or .. .
func ValidTaskType[T ~string | ~[]byte](b T) bool {
	if len(b) == 0 || len(b) > NameMax || IsDots(b) {
		return false
	}
	for i := range len(b) {
		if c := b[i]; !alphanumeric(c) && c != '_' && c != '-' && c != '.' && c != ':' {
			return false
		}
	}
	return true
}

// IsDots reports whether b is . or .., which clients remove from a path, so that a thing of such a name could not be
// requested.
func IsDots[T ~string | ~[]byte](b T) bool { return string(b) == "." || string(b) == ".." }

// ValidStepName reports whether b is the name of a step.
func ValidStepName[T ~string | ~[]byte](b T) bool { return ValidTaskType(b) }

// ValidProcessorID reports whether b is a valid processor id. Every worker_id is one, too.
func ValidProcessorID[T ~string | ~[]byte](b T) bool { return ValidTaskType(b) }

// ValidKey reports whether b is 1 to most bytes without control characters
// (U+0000 to U+001F and U+007F).
func ValidKey[T ~string | ~[]byte](b T, most int) bool {
	if len(b) == 0 || len(b) > most {
		return false
	}
	for i := range len(b) {
		if b[i] < ' ' || b[i] == 0x7f {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
