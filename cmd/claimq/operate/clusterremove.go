package operate

import (
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

func newClusterRemoveCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:   "remove NODE_ID",
		Short: "Take a member out of the cluster",
		Long: `Take a member out of the cluster, alive or dead.

Use it before a dead node is replaced: the new node starts with an empty folder
and --join. A leader hands over first, and the next one removes it. What would
leave too few healthy voters is refused. A node that was removed while it runs
learns it and serves nothing any more: stop it. Its folder is of no more use.`,
		Example: "  claimq cluster remove n3",
	}, func(args []string) (session.Request, error) {
		r, err := session.Post("/api/cluster/remove", map[string]string{"node_id": args[0]}, seeStatus)
		return r.Once(), err
	}, func(args []string, _ *struct{}) error {
		return a.Sayf("%s is no longer a member", term.Printable(args[0]))
	})
}
