package main

import (
	"context"
	"errors"
	"os"

	"github.com/claimq/claimq/jepsen/procs"
)

// workspace is the folder of one run and the binary that its nodes are.
type workspace struct {
	dir    string
	binary string
}

// openWorkspace makes a temporary folder for a run of the command and, if binary
// is "", builds one into it. The caller removes the folder, or tells where it is.
func openWorkspace(ctx context.Context, command, binary string) (workspace, error) {
	return openWorkspaceBuilding(command, binary, func(dir string) (string, error) { return procs.Build(ctx, dir) })
}

// openWorkspaceBuilding is openWorkspace for a binary that is built by build.
func openWorkspaceBuilding(command, binary string, build func(dir string) (string, error)) (workspace, error) {
	dir, err := os.MkdirTemp("", "claimq-"+command+"-")
	if err != nil {
		return workspace{}, err
	}
	if binary == "" {
		if binary, err = build(dir); err != nil {
			return workspace{}, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return workspace{dir: dir, binary: binary}, nil
}

// remove removes the folder and all that is in it.
func (w workspace) remove() error { return os.RemoveAll(w.dir) }

// withNodes calls do with three nodes that run for it alone, in a folder that is
// removed afterwards, and with their binary.
func withNodes(ctx context.Context, command, binary string, flags []string, do func(c *procs.Cluster, binary string) error) error {
	w, err := openWorkspace(ctx, command, binary)
	if err != nil {
		return err
	}
	cluster, err := procs.Start(ctx, procs.Config{Binary: w.binary, Dir: w.dir, Nodes: 3, Flags: flags})
	if err != nil {
		return errors.Join(err, w.remove())
	}
	err = do(cluster, w.binary)
	cluster.Close()
	return errors.Join(err, w.remove())
}
