package operate

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

func newClusterRemoveCommand(a *term.App) *cobra.Command {
	var f session.Flags
	cmd := &cobra.Command{
		Use:   "remove NODE_ID",
		Short: "Take a member out of the cluster",
		Long: `Take a member out of the cluster, alive or dead.

Use it before a dead node is replaced: the new node starts with an empty folder
and --join. A leader hands over first, and the next one removes it. What would
leave too few healthy voters is refused. A node that was removed while it runs
learns it and serves nothing any more: stop it. Its folder is of no more use.`,
		Example: "  claimq cluster remove n3",
		Args:    term.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := json.Marshal(map[string]string{"node_id": args[0]})
			if err != nil {
				return fmt.Errorf("encode request: %w", err)
			}
			return session.With(a, &f, func(s session.Talk) error {
				var answer struct{}
				r := client.Request{Method: http.MethodPost, Path: "/api/cluster/remove", Body: body}
				shown, err := s.Call(cmd.Context(), r, seeStatus, &answer)
				if err != nil || shown {
					return err
				}
				_, err = fmt.Fprintf(a.Stdout, "%s is no longer a member\n", term.Printable(args[0]))
				return err
			})
		},
	}
	session.AddFlags(a, cmd, &f)
	return cmd
}
