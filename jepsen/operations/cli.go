package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/claimq/claimq/jepsen/procs"
)

// errCommand is returned when a command did not end as it should.
var errCommand = errors.New("claimq")

// operator runs commands of the product.
type operator struct {
	binary string
	out    io.Writer // gets each command and what it printed
}

// do runs a command against those of the nodes that run. It must succeed.
func (o *operator) do(ctx context.Context, nodes []*procs.Node, args ...string) (string, error) {
	printed, code, err := o.run(ctx, nodes, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%w %s: exit code %d: %s", errCommand, strings.Join(args, " "), code, printed)
	}
	return printed, err
}

// refused runs a command that the server must refuse, with text in what it says.
func (o *operator) refused(ctx context.Context, nodes []*procs.Node, text string, args ...string) error {
	printed, code, err := o.run(ctx, nodes, args...)
	if err == nil && (code == 0 || !strings.Contains(printed, text)) {
		err = fmt.Errorf("%w %s: exit code %d, it must be refused with %q: %s", errCommand, strings.Join(args, " "), code, text, printed)
	}
	return err
}

// run runs a command, tells of it, and returns what it printed and its exit code. The
// error says that it could not be run.
func (o *operator) run(ctx context.Context, nodes []*procs.Node, args ...string) (string, int, error) {
	printed, code, err := procs.Command(ctx, o.binary, nodes, args...)
	if err == nil {
		fmt.Fprintf(o.out, "$ claimq %s\n%s", strings.Join(args, " "), printed)
	}
	return printed, code, err
}
