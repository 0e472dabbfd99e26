package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claimq/claimq/jepsen/procs"
)

// claimq runs a command as an operator of the cluster does, and tells of it.
func (r *run) claimq(ctx context.Context, args ...string) (string, error) {
	printed, err := procs.Command(ctx, r.cfg.Binary, r.cluster.Nodes, args...)
	fmt.Fprintf(r.cfg.Out, "$ claimq %s\n%s", strings.Join(args, " "), printed)
	return printed, err
}

// claimqRefused runs a command that the server must refuse, with text in what it says.
func (r *run) claimqRefused(ctx context.Context, text string, args ...string) error {
	printed, err := r.claimq(ctx, args...)
	switch {
	case errors.Is(err, procs.ErrCommand) && strings.Contains(printed, text):
		return nil
	case err == nil || errors.Is(err, procs.ErrCommand):
		return fmt.Errorf("claimq %s must be refused with %q: %s", strings.Join(args, " "), text, printed)
	}
	return err
}
