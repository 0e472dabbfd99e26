package operate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// NewClusterCommand returns the command `claimq cluster`.
func NewClusterCommand(a *term.App) *cobra.Command {
	return term.Group(&cobra.Command{
		Use:     "cluster",
		Short:   "Show and change the members of the cluster",
		Example: "  claimq cluster status\n  claimq cluster remove n3",
	},
		newClusterStatusCommand(a),
		newClusterJoinCommand(a),
		newClusterTokenCommand(a),
		newClusterRemoveCommand(a),
		newClusterPromoteCommand(a),
		newClusterDemoteCommand(a),
		newClusterTransferCommand(a),
		newClusterHashCommand(a),
		newClusterUpgradeCommand(a),
		newClusterRecoverCommand(a),
	)
}

func newClusterStatusCommand(a *term.App) *cobra.Command {
	return session.Look(a, &cobra.Command{
		Use:   "status",
		Short: "Show the nodes, who leads, and what needs attention",
		Long: `Show the nodes, which one leads, and what needs attention, as the leader sees it. If
there is no leader, the node that answers says what it knows. Exit code 0 means that
a node answered, not that the cluster is healthy.`,
		Example: "  claimq cluster status\n  claimq cluster status --endpoint http://127.0.0.1:7410 --output json",
	}, session.At("/api/cluster"), func(answer *wire.Cluster) error { return ShowCluster(a, answer) })
}

// zonesOf returns the versions of the nodes' time zone data, or "" if no node reports one.
func zonesOf(c *wire.Cluster) string {
	var versions []string
	for i := range c.Nodes {
		if z := c.Nodes[i].TimeZones; z != nil {
			versions = append(versions, term.Cell(z.Version))
		}
	}
	if len(versions) == 0 {
		return ""
	}
	slices.Sort(versions)
	return "   time zones: " + strings.Join(slices.Compact(versions), ", ")
}

// ShowCluster prints what needs attention, and one row per node.
func ShowCluster(a *term.App, c *wire.Cluster) error {
	leader := cmp.Or(term.Printable(c.Leader), "none")
	d := diagnose(c)
	text := d.summary + "\n"
	for _, point := range d.points {
		text += "  " + point + "\n"
	}
	if err := a.Sayf("%s\nleader: %s   term: %d   feature level: %d%s\n", text, leader, c.Term, c.FeatureLevel, zonesOf(c)); err != nil {
		return err
	}
	rows := [][]string{{"NODE", "STATE", "SUFFRAGE", "HTTP", "PEER", "APPLIED", "CONTACT", "VERSION", "HEALTH"}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		contact := "never"
		if n.LastContactMS >= 0 {
			contact = term.ShowDuration(time.Duration(n.LastContactMS) * time.Millisecond)
		}
		health := term.Printable(n.Problem)
		if health == "" {
			health = "ok"
		}
		rows = append(rows, []string{
			term.Cell(n.NodeID), term.Cell(n.State), term.Cell(n.Suffrage), term.Cell(n.HTTPAddr), term.Cell(n.PeerAddr),
			strconv.FormatUint(n.AppliedIndex, 10), contact, term.Cell(n.Version), health,
		})
	}
	return a.Table(rows, "PEER", "CONTACT", "VERSION", "SUFFRAGE", "APPLIED")
}
