package top

// key is a typed key: a printable character, or one of these constants.
type key rune

const (
	keyNone key = 0x110000 + iota // past all characters
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyTab
	keyBackTab
	keyQuit    // Ctrl-C, Ctrl-\
	keySuspend // Ctrl-Z
	keyRedraw  // Ctrl-L
	keyEscape
)

// sequences maps what terminals send after ESC to keys that have no character.
var sequences = map[string]key{
	"[A": keyUp, "[B": keyDown, "OA": keyUp, "OB": keyDown, "[5~": keyPageUp, "[6~": keyPageDown,
	"[H": keyHome, "OH": keyHome, "[1~": keyHome, "[F": keyEnd, "OF": keyEnd, "[4~": keyEnd, "[Z": keyBackTab,
}

// sequenceMax bounds an escape sequence. Longer input is not a sequence.
const sequenceMax = 16

// parseKeys parses the keys in the input. rest is the start of a sequence that is not complete yet.
func parseKeys(read []byte) (keys []key, rest []byte) {
	for len(read) > 0 {
		if read[0] != 0x1b {
			keys = append(keys, plainKey(read[0]))
			read = read[1:]
			continue
		}
		n, whole := sequence(read[1:])
		if !whole {
			return keys, read
		}
		if k, ok := sequences[string(read[1:1+n])]; ok {
			keys = append(keys, k)
		} else if n == 0 {
			keys = append(keys, keyEscape)
		}
		read = read[1+n:]
	}
	return keys, nil
}

// sequence returns how many bytes of b belong to the ESC before it. whole is false if more bytes must follow.
func sequence(b []byte) (n int, whole bool) {
	if len(b) == 0 {
		return 0, false
	}
	if b[0] != '[' && b[0] != 'O' {
		return 0, true
	}
	for i := 1; i < len(b) && i < sequenceMax; i++ {
		if b[i] >= '@' && b[i] <= '~' { // it ends a sequence
			return i + 1, true
		}
	}
	return min(len(b), sequenceMax), len(b) >= sequenceMax
}

func plainKey(b byte) key {
	switch {
	case b == '\t':
		return keyTab
	case b == 0x03 || b == 0x1c:
		return keyQuit
	case b == 0x1a:
		return keySuspend
	case b == 0x0c:
		return keyRedraw
	case b < ' ' || b > '~':
		return keyNone
	}
	return key(b)
}

// press changes the screen for a key. It returns true if the key ends the program.
func (s *Screen) press(k key, v *View) (quit bool) {
	switch {
	case k == keyQuit || k == 'q' || k == 'Q':
		return true
	case s.Help && (k == keyEscape || k == '?' || k == 'h'):
		s.Help = false
	case k == '?' || k == 'h':
		s.Help = true
	case k == ' ':
		s.Paused = !s.Paused
	case k == keyTab:
		s.Focus = (s.Focus + 1) % sectionCount
	case k == keyBackTab:
		s.Focus = (s.Focus + sectionCount - 1) % sectionCount
	case k == 'r':
		s.Sort[s.Focus].Reversed = !s.Sort[s.Focus].Reversed
	default:
		s.sortBy(k)
		s.scroll(k, v)
	}
	return false
}

// sortOf lists the keys that sort each table.
var sortOf = [sectionCount]string{TypesSection: "tpcoidf", WorkersSection: "wcs"}

// sortBy sorts the table with the focus and shows its top.
func (s *Screen) sortBy(k key) {
	for _, by := range []byte(sortOf[s.Focus]) {
		if key(by) == k {
			s.Sort[s.Focus] = Order{By: by}
			s.First[s.Focus] = 0
		}
	}
}

func (s *Screen) scroll(k key, v *View) {
	count, height := rowsOf(v, s.Focus), visible(v, *s, s.Focus)
	last := max(count-height, 0)
	first := min(s.First[s.Focus], last)
	switch k {
	case keyUp, 'k':
		first--
	case keyDown, 'j':
		first++
	case keyPageUp:
		first -= height
	case keyPageDown:
		first += height
	case keyHome:
		first = 0
	case keyEnd:
		first = last
	default:
		return
	}
	s.First[s.Focus] = min(max(first, 0), last)
}

func rowsOf(v *View, section Section) int {
	switch section {
	case TypesSection:
		return len(v.Types)
	case WorkersSection:
		return len(v.Workers)
	}
	return len(v.Nodes)
}
