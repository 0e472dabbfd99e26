package errorgroup

import (
	"bytes"
	"unicode/utf8"

	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/internal/cause"
)

const (
	// SignatureMax bounds a signature, in bytes.
	SignatureMax = 200
	// readMax bounds how much of a line is read for it.
	readMax = 1024
)

// Placeholders in a signature for the parts that differ from task to task.
const (
	anyNumber = "<n>"
	anyHex    = "<hex>"
	anyUUID   = "<uuid>"
	anyText   = "<text>"
)

// Signature returns what errors of one kind have in common: the line that says what went wrong, cut at 200 bytes, with a
// placeholder for each number, hexadecimal id, UUID and quoted part. The line is the first that is not blank, or of a
// traceback or a stack the innermost exception's (package cause).
func Signature(err string) string { return string(appendSignature(nil, err)) }

func appendSignature[T string | []byte](b []byte, err T) []byte {
	line := lineOf([]byte(err))
	start := len(b)
	for at := 0; at < len(line) && len(b)-start <= SignatureMax; {
		stands, size := "", 0
		if digits := exitCode(line[at:]); digits > 0 {
			b = append(b, line[at:at+digits]...)
			at += digits
			continue
		}
		if at == 0 || !isWord(line[at-1]) || !goesOn(line[at]) {
			stands, size = variable(line, at)
		}
		if size == 0 {
			b = append(b, line[at])
			at++
			continue
		}
		b = append(b, stands...)
		at += size
	}
	if len(b)-start > SignatureMax {
		b = b[:start+len(event.Cut(string(b[start:]), SignatureMax))]
	}
	return b
}

// exitWords stand before the exit code of a command in what `claimq work` says of it. Codes are few, and mean something.
const exitWords = "exit code "

// exitCode returns the length of the words and the exit code at the start of text, or 0.
func exitCode(text []byte) int {
	if !bytes.HasPrefix(text, []byte(exitWords)) {
		return 0
	}
	size := len(exitWords)
	for size < len(text) && isDigit(text[size]) {
		size++
	}
	return size
}

// lineOf returns the line of err that says what went wrong, cut at a whole character. Of a command that is the first one,
// which has its exit code.
func lineOf(err []byte) []byte {
	line, _, more := bytes.Cut(bytes.TrimSpace(err), []byte{'\n'})
	if line = bytes.TrimSpace(line); more && !bytes.Contains(line, []byte(" ("+exitWords)) {
		line = cause.Line(err)
	}
	end := min(len(line), readMax)
	for end < len(line) && end > readMax-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end]
}

// variable returns the length of the variable part at this place, or 0, and its placeholder.
func variable(line []byte, at int) (stands string, size int) {
	if size = quoted(line, at); size > 0 {
		return anyText, size
	}
	if at == 0 || !isWord(line[at-1]) {
		if size = uuid(line[at:]); size > 0 {
			return anyUUID, size
		}
		if size = hexadecimal(line[at:]); size > 0 {
			return anyHex, size
		}
	}
	return anyNumber, number(line[at:])
}

// goesOn reports whether no variable part can begin with c inside a word, as is the case for
// most of an error.
func goesOn(c byte) bool { return !isDigit(c) && c != '"' && c != '`' }

// quoted returns the length of the quoted part at this place, or 0. An apostrophe inside a
// word does not count as a quotation mark.
func quoted(line []byte, at int) int {
	mark := line[at]
	switch {
	case mark != '"' && mark != '\'' && mark != '`':
		return 0
	case mark == '\'' && at > 0 && isWord(line[at-1]):
		return 0
	}
	for end := at + 1; end < len(line); end++ {
		switch {
		case line[end] == '\\' && mark != '`':
			end++
		case line[end] == mark && (mark != '\'' || end+1 == len(line) || !isWord(line[end+1])):
			return end + 1 - at
		}
	}
	return 0
}

// uuid returns the length of the UUID at the start of text, or 0.
func uuid(text []byte) int {
	const size = 36
	if len(text) < size || len(text) > size && isWord(text[size]) {
		return 0
	}
	for at, c := range text[:size] {
		dash := at == 8 || at == 13 || at == 18 || at == 23
		if dash != (c == '-') || !dash && !isHex(c) {
			return 0
		}
	}
	return size
}

// hexadecimal returns the length of the hexadecimal word at the start of text, or 0. The
// word begins with 0x, or has at least eight digits, some of them letters and some not.
func hexadecimal(text []byte) int {
	const prefix, digitsMin = 2, 8
	if len(text) > prefix && text[0] == '0' && text[1] == 'x' && isHex(text[prefix]) {
		size := prefix
		for size < len(text) && isHex(text[size]) {
			size++
		}
		return size
	}
	size, digits := 0, 0
	for size < len(text) && isHex(text[size]) {
		if isDigit(text[size]) {
			digits++
		}
		size++
	}
	if size < digitsMin || digits == 0 || digits == size || size < len(text) && isWord(text[size]) {
		return 0
	}
	return size
}

// number returns the length of the number at the start of text, or 0. Numbers joined by a
// point or the like, as in times and addresses, count as one.
func number(text []byte) int {
	size := 0
	for size < len(text) && (isDigit(text[size]) || size > 0 && joins(text[size]) && size+1 < len(text) && isDigit(text[size+1])) {
		size++
	}
	return size
}

func joins(c byte) bool { return c == '.' || c == ',' || c == ':' || c == '-' || c == '/' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
