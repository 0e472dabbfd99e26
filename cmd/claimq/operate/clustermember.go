package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// seeStatus tells users what to do when a change of the membership may have been made.
const seeStatus = "See with 'claimq cluster status' whether it was done; to repeat the command is safe."

func newClusterJoinCommand(a *term.App) *cobra.Command {
	var nonvoter bool
	cmd := changeMember(a, &cobra.Command{
		Use:   "join NODE_ID PEER_ADDR",
		Short: "Add a waiting node to the cluster",
		Long: `Add a waiting node to the cluster. First start the node with an empty data folder and
without --bootstrap and --initial-cluster; it reports that it is waiting. PEER_ADDR
is the address of its peer port as the members reach it. The node becomes a voter
once it has caught up. With --nonvoter it stays a nonvoter until you promote it.`,
		Example: "  claimq cluster join n4 10.0.0.4:7401\n  claimq cluster join n5 10.0.0.5:7401 --nonvoter",
	}, "join", func(args []string) any {
		return map[string]any{"node_id": args[0], "peer_addr": args[1], "voter": !nonvoter}
	}, func(n *wire.Node) string {
		switch {
		case n.Suffrage == "voter":
			return fmt.Sprintf("%s is a member and a voter", term.Printable(n.NodeID))
		case nonvoter:
			return fmt.Sprintf("%s is a member without a vote", term.Printable(n.NodeID))
		}
		return fmt.Sprintf("%s is a member; it becomes a voter once it has caught up", term.Printable(n.NodeID))
	})
	cmd.Flags().BoolVar(&nonvoter, "nonvoter", false, "keep it a nonvoter until it is promoted")
	term.OnlyExplicit(cmd)
	return cmd
}

func newClusterPromoteCommand(a *term.App) *cobra.Command {
	return changeMember(a, &cobra.Command{
		Use:   "promote NODE_ID",
		Short: "Make a nonvoter a voter",
		Long: `Make a nonvoter that has caught up a voter. Nodes that join become voters by
themselves. Use this for a node that was demoted or joined with --nonvoter.`,
		Example: "  claimq cluster promote n4",
	}, "promote", func(args []string) any { return map[string]string{"node_id": args[0]} }, func(n *wire.Node) string {
		return fmt.Sprintf("%s is a %s", term.Printable(n.NodeID), term.Printable(n.Suffrage))
	})
}

func newClusterDemoteCommand(a *term.App) *cobra.Command {
	return changeMember(a, &cobra.Command{
		Use:   "demote NODE_ID",
		Short: "Make a voter a nonvoter",
		Long: `Make a voter a nonvoter until it is promoted again. It still receives every entry and
serves requests, but writes do not wait for it and it cannot lead. If it is the
leader, it first hands over the leadership. The cluster refuses if too few healthy
voters would remain.`,
		Example: "  claimq cluster demote n4",
	}, "demote", func(args []string) any { return map[string]string{"node_id": args[0]} }, func(n *wire.Node) string {
		return fmt.Sprintf("%s is a %s, until it is promoted", term.Printable(n.NodeID), term.Printable(n.Suffrage))
	})
}

// changeMember makes cmd call POST /api/cluster/VERB. The server answers with the member, and the command prints
// say's text for it.
func changeMember(a *term.App, cmd *cobra.Command, verb string, body func(args []string) any, say func(*wire.Node) string) *cobra.Command {
	return session.Command(a, cmd, func(args []string) (session.Request, error) {
		return session.Post("/api/cluster/"+verb, body(args), seeStatus) // repeating it changes nothing further
	}, func(_ []string, answer *wire.Member) error { return a.Sayf("%s", say(&answer.Node)) })
}

func newClusterTransferCommand(a *term.App) *cobra.Command {
	return session.Command(a, &cobra.Command{
		Use:   "transfer [NODE_ID]",
		Short: "Move the leadership to another node",
		Long: `Move the leadership to the voter NODE_ID or, without it, to the voter that has most
of the log.`,
		Example: "  claimq cluster transfer\n  claimq cluster transfer n2",
	}, func(args []string) (session.Request, error) {
		body := map[string]string{}
		if len(args) == 1 {
			body["node_id"] = args[0]
		}
		r, err := session.Post("/api/cluster/transfer", body, seeStatus)
		r.Repeatable = len(args) == 1 // without a name, a repeat would hand the lead on again
		return r, err
	}, func(_ []string, answer *wire.Transferred) error {
		return a.Sayf("%s leads", term.Printable(answer.Leader))
	})
}

func newClusterHashCommand(a *term.App) *cobra.Command {
	return session.Acts(a, &cobra.Command{
		Use:   "hash",
		Short: "Compare the nodes' states",
		Long: `Compare a hash of each node's state, all at the same index of the log. The cluster
also does this every minute, and a node whose state differs stops. Exit code 1: the
states differ.`,
		Example: "  claimq cluster hash",
	}, func(cmd *cobra.Command, _ []string) (session.Act, error) {
		return func(s session.Talk) error {
			var answer wire.ClusterHash
			shown, err := s.Call(cmd.Context(), session.Get("/api/cluster/hash"), &answer)
			if err == nil && !shown {
				err = showHashes(a, &answer)
			}
			if err == nil && !answer.Agree {
				err = errStatesDiffer
			}
			return err
		}, nil
	})
}

// errStatesDiffer is returned when the nodes report different hashes of their state.
var errStatesDiffer = errors.New("the nodes' states differ: a node that differs from the majority stops by itself within a minute; see \"A node differs\" in docs/operations.md")

func showHashes(a *term.App, h *wire.ClusterHash) error {
	rows, silent := [][]string{{"NODE", "HASH"}}, 0
	for _, n := range h.Nodes {
		hash := term.Printable(n.Hash)
		if hash == "" {
			hash = "no answer in time"
			silent++
		}
		rows = append(rows, []string{term.Cell(n.NodeID), hash})
	}
	word := "The states agree"
	switch {
	case !h.Agree:
		word = "THE STATES DIFFER"
	case silent > 0:
		word = fmt.Sprintf("The states of %d of %d nodes agree", len(h.Nodes)-silent, len(h.Nodes))
	}
	if err := a.Sayf("%s at log index %d\n", word, h.Index); err != nil {
		return err
	}
	return a.Table(rows)
}

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
