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
	return term.Lead(&cobra.Command{
		Use:     "cluster",
		Short:   "Look after the cluster",
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
		Long: `Show the nodes, which one leads, and in words what needs attention: as the leader sees
it, or without a leader the node that answers. Exit code 0: a node answered, whatever it says.`,
		Example: "  claimq cluster status\n  claimq cluster status --endpoint http://127.0.0.1:7410 --output json",
	}, session.At("/api/cluster"), func(answer *wire.Cluster) error { return showCluster(a, answer) })
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

func showCluster(a *term.App, c *wire.Cluster) error {
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
