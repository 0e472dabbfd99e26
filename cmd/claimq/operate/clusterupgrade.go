package operate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

func newClusterUpgradeCommand(a *term.App) *cobra.Command {
	var finalize bool
	cmd := &cobra.Command{
		Use:   "upgrade [--finalize]",
		Short: "Enable the features of a new version",
		Long: `Show which feature level each node supports. With --finalize, raise the cluster's
level to the highest that all nodes support. Do this once all nodes run the new
version. Until then the cluster only uses features of the old version, so that nodes
can go back to it; afterwards they cannot. The cluster refuses while a node runs an
older version or a voter does not answer.`,
		Example: "  claimq cluster upgrade\n  claimq cluster upgrade --finalize",
	}
	session.Command(a, cmd, func([]string) (session.Request, error) {
		body := []byte("{}") // raising it to its present value changes nothing
		if !finalize {
			body = []byte(`{"dry_run":true}`)
		}
		return session.Post("/api/cluster/upgrade", body, "Repeat the command: it changes nothing once it is done.")
	}, func(_ []string, answer *wire.Upgraded) error {
		if !finalize {
			return showUpgrade(a, answer)
		}
		return a.Sayf("the cluster is at feature level %d", answer.FeatureLevel)
	})
	cmd.Flags().BoolVar(&finalize, "finalize", false, "do it")
	term.OnlyExplicit(cmd)
	return cmd
}

// showUpgrade prints which level each node knows, and what --finalize would do.
func showUpgrade(a *term.App, plan *wire.Upgraded) error {
	rows := [][]string{{"NODE", "VERSION", "KNOWS LEVEL"}}
	var silent, old []string
	highest := plan.FeatureLevel
	for _, n := range plan.Nodes {
		highest = max(highest, n.FeatureLevel)
	}
	for _, n := range plan.Nodes {
		rows = append(rows, []string{term.Cell(n.NodeID), term.Cell(n.Version), strconv.FormatUint(uint64(n.FeatureLevel), 10)})
		if !n.Answers {
			silent = append(silent, term.Printable(n.NodeID))
		}
		if n.FeatureLevel < highest {
			old = append(old, term.Printable(n.NodeID))
		}
	}
	if err := a.Table(rows); err != nil {
		return err
	}
	return a.Sayf("\nthe cluster is at feature level %d; %s", plan.FeatureLevel, upgradeAdvice(plan, silent, old))
}

func upgradeAdvice(plan *wire.Upgraded, silent, old []string) string {
	switch {
	case len(silent) > 0:
		return "bring back first, or remove, what does not answer: " + strings.Join(silent, ", ")
	case len(old) > 0:
		return "run the newer version first on " + strings.Join(old, ", ")
	case plan.WouldBe > plan.FeatureLevel:
		return fmt.Sprintf("--finalize would raise it to %d. From then on no older version can take part", plan.WouldBe)
	}
	return "there is nothing to finalize"
}
