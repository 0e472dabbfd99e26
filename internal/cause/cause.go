// Package cause finds the line of an error that says what went wrong: of a traceback or a stack the innermost one, as
// Python, Node, Java, Go, Ruby and PHP print them.
package cause

import (
	"bytes"
	"regexp"
)

// Line returns the line of text that says what went wrong, without white space around it: of a traceback or a stack the
// innermost exception's or panic's, otherwise the first line. The result is a part of text.
func Line(text []byte) []byte {
	if line := Traced(text); line != nil {
		return line
	}
	text = bytes.TrimSpace(text)
	first, _, _ := bytes.Cut(text, []byte{'\n'})
	first, _, _ = bytes.Cut(first, []byte{'\r'})
	return bytes.TrimSpace(first)
}

// Traced is Line of a text that has a traceback or a stack. It returns nil for any other text.
func Traced(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 {
		return nil
	}
	for _, find := range [...]func(text []byte) []byte{ofPython, ofPHP, ofGo, ofRuby, ofFrames} {
		if line := bytes.TrimSpace(find(text)); len(line) > 0 {
			return line
		}
	}
	return nil
}

// ofPython finds the first exception of a chain: those after it were raised while it was handled, or because of it. Of
// a group it finds the first exception in it.
func ofPython(text []byte) (found []byte) {
	const header = "Traceback (most recent call last):"
	if !bytes.Contains(text, []byte(header)) {
		return nil
	}
	group := bytes.Contains(text, []byte("Exception Group "+header))
	expects := false // the next line that is not indented is an exception
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\r\n")
		if group {
			var divides bool
			if line, divides = inGroup(line); divides {
				found, expects = nil, true
				continue
			}
		}
		switch {
		case bytes.HasSuffix(line, []byte(header)):
			expects = true
		case !expects || len(line) == 0 || line[0] == ' ' || line[0] == '\t':
		default:
			found, expects = line, false
			if !group || !bytes.Contains(line, []byte("sub-exception")) {
				return withoutRuby(found)
			}
		}
	}
	return found
}

// inGroup returns a line of a traceback without the marks at its left that show to which exception of a group it
// belongs. divides says that it begins the next exception of the group.
func inGroup(line []byte) (rest []byte, divides bool) {
	rest = bytes.TrimLeft(line, " ")
	switch {
	case bytes.HasPrefix(rest, []byte("+-")):
		return nil, true
	case bytes.HasPrefix(rest, []byte("| ")), bytes.HasPrefix(rest, []byte("+ ")):
		return rest[2:], false
	case len(rest) == 1 && rest[0] == '|':
		return nil, false
	}
	return line, false
}

// ofPHP finds the first exception of a chain: PHP prints an exception before those that it caused.
func ofPHP(text []byte) []byte {
	trace := phpTrace.FindIndex(text)
	if trace == nil {
		return nil
	}
	line := text[:trace[0]]
	if begin := bytes.Index(line, []byte("Uncaught ")); begin >= 0 {
		line, _, _ = bytes.Cut(line[begin+len("Uncaught "):], []byte{'\n'})
		line = bytes.TrimRight(line, "\r")
	} else {
		line = line[bytes.LastIndexByte(line, '\n')+1:]
	}
	if place := phpPlace.FindIndex(line); place != nil {
		line = line[:place[0]]
	}
	return line
}

var (
	phpTrace = regexp.MustCompile(`\r?\nStack trace:\r?\n#0 `)
	phpPlace = regexp.MustCompile(` in \S+:\d+$`)
)

// ofGo finds the first panic: those after it were raised by deferred functions while it unwound the stack.
func ofGo(text []byte) []byte {
	end := bytes.Index(text, []byte("\ngoroutine "))
	if end < 0 {
		return nil
	}
	for line := range bytes.Lines(text[:end]) {
		if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			line, _, _ = bytes.Cut(line, []byte(" [recovered"))
			return line
		}
	}
	return nil
}

// ofRuby finds the last exception: Ruby prints an exception before its cause.
func ofRuby(text []byte) (found []byte) {
	if !bytes.Contains(text, []byte("\tfrom ")) {
		return nil
	}
	for line := range bytes.Lines(text) {
		if m := rubyLine.FindSubmatch(bytes.TrimRight(line, "\r\n")); m != nil {
			found = m[1]
		}
	}
	return found
}

// rubyLine is an exception of Ruby with the place where it was raised.
var rubyLine = regexp.MustCompile("^\\S.*?:\\d+:in [`'].*?': (.+ \\([A-Z][\\w:]*\\))$")

// withoutRuby returns a line without the place that Ruby puts before an exception, because some tracebacks of Ruby
// begin like those of Python.
func withoutRuby(line []byte) []byte {
	if m := rubyLine.FindSubmatch(line); m != nil {
		return m[1]
	}
	return line
}

// ofFrames finds the innermost exception of a stack whose frames begin with "at", as those of Java and Node.
func ofFrames(text []byte) (found []byte) {
	if !frame.Match(text) {
		return nil
	}
	var listed, pointed bool // the next line is one of [errors]; the line below a ^ is, which points into the source
	inner := false
	for line := range bytes.Lines(text) {
		bare := bytes.TrimSpace(line)
		cause, isCause := bytes.CutPrefix(line, []byte("Caused by: "))
		if !isCause {
			cause, isCause = bytes.CutPrefix(bare, []byte("[cause]: "))
		}
		switch {
		case isCause:
			found, inner = cause, true
		case bytes.HasPrefix(bare, []byte("[errors]: [")):
			listed = true
		case listed && len(bare) > 0:
			found, inner, listed = bare, true, false
		case inner:
		case len(bare) > 0 && len(bytes.Trim(bare, "^")) == 0:
			pointed = true
		case pointed && len(bare) > 0:
			found, inner, pointed = bare, true, false
		case found == nil && exception.Match(line):
			found = bare
		}
	}
	found = bytes.TrimSuffix(bytes.TrimSpace(found), []byte(" {"))
	if _, reason, ok := bytes.Cut(found, []byte(`rejected with the reason "`)); ok {
		found = bytes.TrimSuffix(reason, []byte(`".`))
	}
	return found
}

var (
	frame     = regexp.MustCompile(`(?m)^\s+at (?:.*[:(][^()]*\)|\S+:\d+:\d+)`)
	exception = regexp.MustCompile(`^(?:Exception in thread "[^"]*" |Uncaught )?[\w.$]*(?:Error|Exception|Throwable)(?: \[\w+\])?(?::|\r?\n|$)`)
)
