package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
)

func newClusterUpgradeCommand(a *app) *cobra.Command {
	var f clientFlags
	var finalize bool
	cmd := &cobra.Command{
		Use:   "upgrade --finalize",
		Short: "Let the cluster use what its new version can do",
		Long: `Let the cluster use what its new version can do, once all nodes run it. Until then
it does only what the old version knows, and nodes can be taken back to that; there
is no way back from here. Refused while a voter runs an older version.`,
		Example: "  claimq cluster upgrade --finalize",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !finalize {
				return usageErrorf("--finalize is missing: there is no way back to the old version after it")
			}
			return a.talk(&f, func(s session) error {
				var answer wire.Upgraded
				// Raising it to where it is changes nothing.
				r := client.Request{Method: http.MethodPost, Path: "/api/cluster/upgrade", Body: []byte("{}"), Repeatable: true}
				shown, err := s.call(cmd.Context(), r, "Repeat the command: it changes nothing once it is done.", &answer)
				if err != nil || shown {
					return err
				}
				_, err = fmt.Fprintf(a.stdout, "the cluster is at feature level %d\n", answer.FeatureLevel)
				return err
			})
		},
	}
	addClientFlags(a, cmd, &f)
	cmd.Flags().BoolVar(&finalize, "finalize", false, "do it (required)")
	onlyExplicit(cmd)
	return cmd
}
