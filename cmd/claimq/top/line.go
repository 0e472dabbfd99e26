package top

import "strings"

// Style is the look of text on a terminal that can show it.
type Style uint8

// These are the styles. A color never says more than the words.
const (
	Plain Style = iota
	Bold
	Dim
	Alert   // red: needs a person
	Warn    // yellow: is unusual
	Heading // reversed
	Marked  // a heading that the keys act on or that is sorted by
)

// escapes start each style. The second one of each pair is for a terminal without colors.
var escapes = [...][2]string{
	Plain: {"", ""}, Bold: {"\x1b[1m", "\x1b[1m"}, Dim: {"\x1b[2m", "\x1b[2m"}, Alert: {"\x1b[1;31m", "\x1b[1m"}, Warn: {"\x1b[33m", "\x1b[1m"},
	Heading: {"\x1b[7m", "\x1b[7m"}, Marked: {"\x1b[1;4;7m", "\x1b[1;4;7m"},
}

// span is text in one style. It is ASCII without control characters.
type span struct {
	text  string
	style Style
}

// Line is a line of a screen.
type Line []span

// Text returns the line without styles.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// ANSI returns the line with its escape sequences.
func (l Line) ANSI(colours bool) string {
	var b strings.Builder
	for _, s := range l {
		start := escapes[s.style][1]
		if colours {
			start = escapes[s.style][0]
		}
		if start == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString(start + s.text + "\x1b[0m")
	}
	return b.String()
}

func (l Line) width() int {
	n := 0
	for _, s := range l {
		n += len(s.text)
	}
	return n
}

// fit cuts the line to width characters; 0 means any length.
func (l Line) fit(width int) Line {
	if width <= 0 || l.width() <= width {
		return l
	}
	var out Line
	for _, s := range l {
		if len(s.text) >= width {
			return append(out, span{cut(s.text, width), s.style})
		}
		out = append(out, s)
		width -= len(s.text)
	}
	return out
}

// wrap puts items on lines of at most width characters, with two blanks between items.
func wrap(items []Line, width int) []Line {
	var lines []Line
	var line Line
	for _, item := range items {
		if len(line) > 0 && width > 0 && line.width()+2+item.width() > width {
			lines = append(lines, line)
			line = nil
		}
		if len(line) > 0 {
			line = append(line, span{"  ", Plain})
		}
		line = append(line, item...)
	}
	if len(line) > 0 {
		lines = append(lines, line)
	}
	for i := range lines {
		lines[i] = lines[i].fit(width)
	}
	return lines
}
