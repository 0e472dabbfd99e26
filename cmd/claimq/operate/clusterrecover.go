package operate

import (
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// recoverConsent is the flag that a user must give before anything is recovered.
const recoverConsent = "yes-i-know-this-may-lose-data"

func newClusterRecoverCommand(a *term.App) *cobra.Command {
	var dataDir string
	var consent bool
	var o term.OutputFlag
	cmd := &cobra.Command{
		Use:   "recover --data-dir DIR",
		Short: "Make a cluster of one node after most were lost",
		Long: `Make the node of a data folder the only member of a new cluster with the tasks it
has. This is the last resort after a cluster has lost most of its voters for good. If
enough of them can be repaired, repair them instead.

Stop all nodes first. Data that only the lost nodes had is lost: tasks submitted and
claims completed in the last moments. Choose the node with the longest log: without
--yes-i-know-this-may-lose-data the command changes nothing and prints where the
folder's log ends. Never start the other nodes with their old folders again. Ids and
claim tokens jump ahead, so that none is issued twice.

Afterwards start the node with its usual flags, and join new nodes with empty
folders.`,
		Example: "  claimq cluster recover --data-dir /var/lib/claimq\n  claimq cluster recover --data-dir /var/lib/claimq --" + recoverConsent,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dataDir == "" {
				return term.UsageErrorf("--data-dir is missing: name the data folder of the node that goes on")
			}
			logger := hclog.New(&hclog.LoggerOptions{Name: "claimq", Level: hclog.Warn, Output: a.Stderr})
			r, err := cluster.Recover(cluster.RecoverConfig{DataDir: dataDir, Logger: logger, DryRun: !consent})
			if err != nil {
				return fmt.Errorf("recover %s: %w", dataDir, err)
			}
			show := showRecovery
			if o.Output == "json" {
				show = showRecoveryJSON
			}
			if err := show(a.Stdout, &r, consent); err != nil || consent {
				return err
			}
			return term.UsageErrorf("nothing was changed: give --%s to do it", recoverConsent)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "data folder of a node that is stopped (required)")
	cmd.Flags().BoolVar(&consent, recoverConsent, false, "do it")
	o.Add(cmd)
	return cmd
}

func showRecoveryJSON(w io.Writer, r *cluster.Recovery, done bool) error {
	answer := struct {
		NodeID    string   `json:"node_id"`
		ClusterID string   `json:"cluster_id,omitempty"` // the new one
		LastIndex uint64   `json:"last_index"`
		Without   []string `json:"without"` // peer addresses of the nodes that the cluster gives up
		Done      bool     `json:"done"`
	}{NodeID: r.NodeID, ClusterID: r.ClusterID, LastIndex: r.LastIndex, Without: []string{}, Done: done}
	for _, o := range r.Others {
		answer.Without = append(answer.Without, o.PeerAddr)
	}
	return term.ShowJSON(w, answer)
}

func showRecovery(w io.Writer, r *cluster.Recovery, done bool) error {
	var others []string
	for _, o := range r.Others {
		others = append(others, o.PeerAddr)
	}
	left := "no other node"
	if len(others) > 0 {
		left = "the nodes at " + strings.Join(others, ", ")
	}
	text := fmt.Sprintf("Node %s becomes the only member of a new cluster, without %s. Entries after log index %d that only they have are lost.\n"+
		"Do it only if most of them are lost for good, with all nodes stopped, and never start them again with their old folders.\n",
		term.Printable(r.NodeID), left, r.LastIndex)
	if done {
		text = fmt.Sprintf("Node %s is the only member of the new cluster %s, without %s. It has what was in its log up to index %d.\n"+
			"Start it with its usual flags, and join new nodes with empty folders. Never start the others again with their old folders.\n",
			term.Printable(r.NodeID), r.ClusterID, left, r.LastIndex)
	}
	_, err := io.WriteString(w, text)
	return err
}
