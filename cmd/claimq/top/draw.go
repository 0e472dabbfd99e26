package top

import "time"

// Draw returns the lines of the view for the screen. They fit into its rows and columns. It changes neither v nor s.
func Draw(v *View, s Screen) []Line {
	if s.Now.IsZero() {
		s.Now = v.At
	}
	if s.Help {
		return bounded(drawHelp(s), s)
	}
	head := drawHead(v, s)
	if s.Rows == 0 {
		lines := head
		for section := range sectionCount {
			lines = append(append(lines, nil), drawTable(v, s, section, 1<<20)...)
		}
		return lines
	}
	foot := drawFoot(s)
	room := s.Rows - len(head) - 1
	lines := head
	for section, height := range share(v, s, room) {
		if height > 1 {
			lines = append(append(lines, nil), drawTable(v, s, Section(section), height-1)...)
		}
	}
	for len(lines) < s.Rows-1 {
		lines = append(lines, nil)
	}
	lines = lines[:max(s.Rows-1, 0)]
	return bounded(append(lines, foot), s)
}

func bounded(lines []Line, s Screen) []Line {
	if s.Rows > 0 && len(lines) > s.Rows {
		lines = lines[:s.Rows]
	}
	for i := range lines {
		lines[i] = lines[i].fit(s.Columns)
	}
	return lines
}

// sharedRowsMin is the number of lines below which only the table with the focus is drawn.
const sharedRowsMin = 13

// share divides the room's lines between the tables; a table's lines include the blank line above it. The nodes get
// at most a quarter, the workers two fifths of the rest, and the types what is left. No table gets more than its rows
// need.
func share(v *View, s Screen, room int) [sectionCount]int {
	var heights [sectionCount]int
	if room < sharedRowsMin {
		heights[s.Focus] = room
		return heights
	}
	wants := [sectionCount]int{TypesSection: len(v.Types) + 2, WorkersSection: len(v.Workers) + 2, NodesSection: len(v.Nodes) + 2}
	heights[NodesSection] = min(wants[NodesSection], max(room/4, 5))
	rest := room - heights[NodesSection]
	heights[WorkersSection] = min(wants[WorkersSection], max(rest*2/5, 3))
	heights[TypesSection] = min(wants[TypesSection], rest-heights[WorkersSection])
	// Lines that the types do not need go to the workers, and then to the nodes.
	heights[WorkersSection] = min(wants[WorkersSection], rest-heights[TypesSection])
	heights[NodesSection] = min(wants[NodesSection], room-heights[TypesSection]-heights[WorkersSection])
	return heights
}

// visible returns how many rows of a table are drawn, at least one.
func visible(v *View, s Screen, section Section) int {
	if s.Now.IsZero() {
		s.Now = v.At
	}
	return max(share(v, s, s.Rows-len(drawHead(v, s))-1)[section]-2, 1)
}

// drawFoot draws the line with the keys.
func drawFoot(s Screen) Line {
	var line Line
	if s.Paused {
		line = append(line, span{"PAUSED: space goes on", Warn}, span{"  ", Plain})
	}
	return append(line, span{"q quit  ? help  space pause  tab " + nextTable[s.Focus] + "  " + tableKeys[s.Focus], Dim})
}

var nextTable = [sectionCount]string{TypesSection: "workers", WorkersSection: "nodes", NodesSection: "types"}

var tableKeys = [sectionCount]string{TypesSection: "sort t p c o i d f r", WorkersSection: "sort w c s r", NodesSection: ""}

// drawHelp draws the explanation of keys and words.
func drawHelp(s Screen) []Line {
	text := []string{
		"claimq top: " + s.Interval.String() + " between looks",
		"",
		"q, Ctrl-C  quit              space  pause, go on",
		"tab        next table        up, down, page up, page down, home, end",
		"r          turn the order    ?      this, and back",
		"",
		"types      sort by t name, p pending, c claimed, o oldest,",
		"           i IN/S, d DONE/S, f FAIL/S",
		"workers    sort by w name, c claimed, s last seen",
		"",
		"per s at the top: between the last two looks, of the",
		"leader's counters; - after a change of leader. IN/S, DONE/S",
		"and FAIL/S of a type: over the last minute. FAIL/S: for good.",
		"OLDEST: the age of the oldest pending task. LAG: log entries",
		"that a node has still to apply.",
	}
	lines := make([]Line, len(text))
	for i := range text {
		lines[i] = Line{{text[i], Plain}}
	}
	lines[0][0].style = Bold
	return lines
}

// since returns the milliseconds since t, or 0 if t is in the future.
func since(t time.Time, s Screen) int64 { return max(s.Now.Sub(t).Milliseconds(), 0) }
