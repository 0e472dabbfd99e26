package operate

import (
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

func newClusterRemoveCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:   "remove NODE_ID",
		Short: "Remove a member from the cluster",
		Long: `Remove a member from the cluster, whether it is running or not.

Use this before you replace a dead node; start the new node with an empty folder and
--join. If the member is the leader, it first hands over the leadership, and the next
leader removes it. The cluster refuses if too few healthy voters would remain. A
running node that was removed notices, serves nothing, and ends 10 minutes later with
exit code 0. Its folder cannot be used again.`,
		Example: "  claimq cluster remove n3",
	}, func(args []string) (session.Request, error) {
		r, err := session.Post("/api/cluster/remove", map[string]string{"node_id": args[0]}, seeStatus)
		return r.Once(), err
	}, func(args []string, _ *struct{}) error {
		return a.Sayf("%s is no longer a member", term.Printable(args[0]))
	})
}
