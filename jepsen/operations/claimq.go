package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claimq/claimq/jepsen/procs"
)

// errCommand is returned when a command did not end as it should.
var errCommand = errors.New("claimq")

// command runs a command of the binary against those of the nodes that run, and returns
// what it printed. It must succeed.
func (r *run) command(ctx context.Context, binary string, nodes []*procs.Node, args ...string) (string, error) {
	printed, code, err := procs.Command(ctx, binary, nodes, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%w %s: exit code %d: %s", errCommand, strings.Join(args, " "), code, printed)
	}
	return printed, err
}

// claimq runs a command as an operator of the cluster does, and tells of it.
func (r *run) claimq(ctx context.Context, args ...string) (string, error) {
	printed, err := r.command(ctx, r.cfg.Binary, r.cluster.Nodes, args...)
	fmt.Fprintf(r.cfg.Out, "$ claimq %s\n%s", strings.Join(args, " "), printed)
	return printed, err
}

// claimqRefused runs a command that the server must refuse, with text in what it says.
func (r *run) claimqRefused(ctx context.Context, text string, args ...string) error {
	printed, err := r.claimq(ctx, args...)
	if err != nil && !errors.Is(err, errCommand) {
		return err
	}
	if err == nil || !strings.Contains(printed, text) {
		return fmt.Errorf("%w %s must be refused with %q: %s", errCommand, strings.Join(args, " "), text, printed)
	}
	return nil
}
