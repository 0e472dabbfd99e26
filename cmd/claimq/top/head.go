package top

import (
	"fmt"
	"slices"

	"github.com/claimq/claimq/internal/bytesize"
)

// staleLooks is the number of intervals without an answer after which the screen says so.
const staleLooks = 3

// drawHead draws the leader, the problems and the totals.
func drawHead(v *View, s Screen) []Line {
	lines := []Line{drawTitle(v, s)}
	lines = append(lines, drawTroubles(v, s)...)
	for _, items := range [][]Line{totals(v), rates(v), resources(v)} {
		lines = append(lines, wrap(squeeze(items, s.Columns), s.Columns)...)
	}
	return lines
}

// drawTitle draws the first line, with the time of the look at its end.
func drawTitle(v *View, s Screen) Line {
	line := Line{{"claimq", Bold}}
	switch {
	case v.Leader != "":
		line = append(line, span{fmt.Sprintf("  leader %s  term %d", clean(v.Leader), v.Term), Plain})
	case !v.noLeaderSince.IsZero():
		line = append(line, span{"  NO LEADER", Alert}, span{fmt.Sprintf("  term %d", v.Term), Plain})
	}
	switch down := len(v.Nodes) - v.NodesUp; {
	case down > 0:
		line = append(line, span{fmt.Sprintf("  %d of %d nodes up", v.NodesUp, len(v.Nodes)), Alert})
	case len(v.Nodes) == 1:
		line = append(line, span{"  1 node up", Plain})
	case len(v.Nodes) > 1:
		line = append(line, span{fmt.Sprintf("  %d nodes up", v.NodesUp), Plain})
	}
	if versions := versionsOf(v); len(versions) == 1 {
		line = append(line, span{"  version " + cut(clean(versions[0]), 24), Plain})
	} else if len(versions) > 1 {
		line = append(line, span{fmt.Sprintf("  %d versions", len(versions)), Warn})
	}
	at := v.At.UTC().Format("15:04:05") + " UTC"
	if gap := s.Columns - line.width() - len(at); gap >= 2 {
		line = append(line, span{fmt.Sprintf("%*s", gap+len(at), at), Dim})
	} else if s.Columns == 0 {
		line = append(line, span{"  " + at, Dim})
	}
	return line.fit(s.Columns)
}

// versionsOf returns the versions that the nodes run, each once.
func versionsOf(v *View) []string {
	var versions []string
	for i := range v.Nodes {
		if version := v.Nodes[i].Version; version != "" && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return versions
}

// drawTroubles draws one line for each problem that needs a person.
func drawTroubles(v *View, s Screen) []Line {
	var lines []Line
	add := func(text string, style Style) { lines = append(lines, Line{{clean(text), style}}.fit(s.Columns)) }
	if !v.silentSince.IsZero() {
		add("no node has answered for "+showMS(since(v.silentSince, s))+": what follows is as it was", Alert)
	}
	if !v.noLeaderSince.IsZero() {
		add("no leader for "+showMS(since(v.noLeaderSince, s))+": nothing can be written or claimed. Counts are from before", Alert)
	} else if late := since(v.At, s); v.silentSince.IsZero() && !s.Paused && s.Interval > 0 && late > staleLooks*s.Interval.Milliseconds() {
		add("no answer for "+showMS(late), Warn)
	}
	for i, problem := range v.Problems {
		if i == problemsMax {
			break
		}
		add(problem, Warn)
	}
	return lines
}

// problemsMax bounds the lines about failed requests.
const problemsMax = 3

func totals(v *View) []Line {
	items := []Line{}
	for _, status := range []string{"pending", "claimed", "scheduled", "blocked", "running", "failed", "completed", "cancelled"} {
		n, ok := v.Counts[status]
		if n == 0 && status == "cancelled" {
			continue
		}
		text := showCount(n, 14)
		if !ok {
			text = "-"
		}
		items = append(items, item(status, text, n > 0))
	}
	return items
}

// squeeze makes items fit on one line less, if that is possible. It leaves out items without a value, from the last
// one on, only as many as needed.
func squeeze(items []Line, width int) []Line {
	all := items
	items = slices.Clone(items)
	for i := len(items) - 1; i > 0 && width > 0 && len(wrap(items, width)) > 1; i-- {
		if items[i][0].style == Dim {
			items = slices.Delete(items, i, i+1)
		}
	}
	if len(wrap(items, width)) == len(wrap(all, width)) {
		return all
	}
	return items
}

// item formats a name and a value. If there is false, both are dim.
func item(name, value string, there bool) Line {
	if !there {
		return Line{{name + " " + value, Dim}}
	}
	return Line{{name + " ", Plain}, {value, Bold}}
}

func rates(v *View) []Line {
	items := []Line{{{"per s:", Plain}}}
	names := []string{"submitted", "claimed", "completed", "failed", "expired"}
	if v.Rates == nil {
		for _, name := range names {
			items = append(items, item(name, "-", false))
		}
		return items
	}
	for i, rate := range []float64{v.Rates.Submitted, v.Rates.Claimed, v.Rates.Completed, v.Rates.Failed, v.Rates.Expired} {
		item := item(names[i], showRate(rate, 10), rate > 0)
		if rate > 0 && i >= 3 {
			item[1].style = Warn
		}
		items = append(items, item)
	}
	return items
}

// nearly is the share of a limit from which it is shown as a warning.
const nearly = 0.9

// resources formats the resources that may run out.
func resources(v *View) []Line {
	var items []Line
	if v.OldestPendingMS != nil {
		items = append(items, item("oldest pending", showMS(*v.OldestPendingMS), *v.OldestPendingMS > 0))
	}
	if v.StateBytes != nil && v.StateLimitBytes != nil {
		it := item("state", bytesize.Text(*v.StateBytes)+" of "+bytesize.Text(*v.StateLimitBytes), true)
		if float64(*v.StateBytes) > nearly*float64(*v.StateLimitBytes) {
			it[1].style = Alert
		}
		items = append(items, it)
	}
	var lag int64
	lagging := ""
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.NodeID == v.Leader && n.DiskFreeBytes != nil {
			items = append(items, item("disk free", bytesize.Text(*n.DiskFreeBytes), true))
		}
		if n.LagEntries != nil && *n.LagEntries >= lag {
			lag, lagging = *n.LagEntries, n.NodeID
		}
	}
	if lagging != "" {
		text := "0"
		if lag > 0 {
			text = showCount(lag, 10) + " (" + clean(lagging) + ")"
		}
		items = append(items, item("lag", text, lag > 0))
	}
	return items
}
