package operate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
)

// diagnosis describes the state of a cluster: one line that sums it up, and the points about the whole cluster that
// need attention. The problem of a single node is in the node's row.
type diagnosis struct {
	summary string
	points  []string
}

// lowDisk begins a node's problem if its only problem is a low disk.
const lowDisk = "its disk is low"

// diagnose judges the cluster from the answer of one node.
func diagnose(c *wire.Cluster) diagnosis {
	var d diagnosis
	voters, healthy, warned := 0, 0, 0
	var silent []string // voters that do not answer
	versions := map[string][]string{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		name := term.Printable(n.NodeID)
		if n.Version != "" {
			versions[n.Version] = append(versions[n.Version], name)
		}
		if n.Problem != "" {
			warned++
		}
		if n.Suffrage != "voter" {
			continue
		}
		voters++
		// A node with a low disk needs an operator, but it votes and writes like the others.
		if n.Healthy || strings.HasPrefix(n.Problem, lowDisk) {
			healthy++
		}
		if n.State == "unknown" {
			silent = append(silent, name)
		}
	}
	if r := c.Restore; r != nil {
		d.points = append(d.points, fmt.Sprintf("a backup is being restored since entry %d of the log: %s of %s; until it has ended nothing else is taken, "+
			"and if its leader dies the next one gives it up", r.Index, bytesize.Text(int64(r.Taken)), bytesize.Text(int64(r.Bytes))))
	}
	if len(versions) > 1 {
		d.points = append(d.points, "the versions differ: "+listVersions(versions)+"; finish the upgrade")
	}
	if voters > 0 && voters%2 == 0 {
		d.points = append(d.points, evenVoters(voters))
	}
	need := voters/2 + 1
	answering := voters - len(silent)
	switch {
	case c.Leader == "" && answering < need:
		d.summary = fmt.Sprintf("NO QUORUM: %s, %d are needed. Nothing can be written or claimed until %s", countOf(answering, voters, "answer"), need, recoveryCondition(silent))
		d.points = append(d.points, "if they are lost for good, see 'claimq cluster recover --help'")
	case c.Leader == "":
		d.summary = "NO LEADER: nothing can be written or claimed. An election takes a second or two: look again"
	case healthy < voters:
		d.summary = fmt.Sprintf("%s leads, %s well: %s", term.Printable(c.Leader), countOf(healthy, voters, "are"), toleratedText(healthy-need))
	case warned > 0 || len(d.points) > 0:
		d.summary = fmt.Sprintf("%s leads %s; see below what needs attention", term.Printable(c.Leader), voterSummary(voters, voters-need))
	default:
		d.summary = fmt.Sprintf("All is well: %s leads %s", term.Printable(c.Leader), voterSummary(voters, voters-need))
	}
	return d
}

// evenVoters says why an even number of voters is bad.
func evenVoters(voters int) string {
	if voters == 2 {
		return "2 voters tolerate no failure, and each can stop the other: add one"
	}
	return fmt.Sprintf("%d voters tolerate no more failures than %d do: add one, or demote one", voters, voters-1)
}

// voterSummary says how many voters the cluster has and how many may fail.
func voterSummary(voters, spare int) string {
	if voters == 1 {
		return "alone: while it is down nothing can be submitted or claimed, and if its disk is lost all tasks are"
	}
	return fmt.Sprintf("%d voters, of which %d may fail", voters, spare)
}

func countOf(count, voters int, verb string) string {
	switch {
	case count == 1 && verb == "are":
		verb = "is"
	case count == 1:
		verb += "s"
	}
	return fmt.Sprintf("%d of %d voters %s", count, voters, verb)
}

func toleratedText(count int) string {
	if count <= 0 {
		return "if one more fails, nothing can be written"
	}
	return fmt.Sprintf("%d more may fail", count)
}

func recoveryCondition(missing []string) string {
	switch len(missing) {
	case 0:
		return "one comes back"
	case 1:
		return missing[0] + " comes back"
	}
	return "enough of " + strings.Join(missing, ", ") + " come back"
}

// listVersions lists the nodes of each version, sorted by version.
func listVersions(versions map[string][]string) string {
	var names []string
	for version := range versions {
		names = append(names, version)
	}
	slices.Sort(names)
	for i, version := range names {
		names[i] = term.Printable(version) + " on " + strings.Join(versions[version], ", ")
	}
	return strings.Join(names, "; ")
}
