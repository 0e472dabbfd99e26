package session

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// Act is what a command does with the nodes.
type Act func(s Talk) error

// Acts gives cmd the common flags and has it do what act says, once that has nothing against
// the arguments and cmd's own flags.
func Acts(a *term.App, cmd *cobra.Command, act func(cmd *cobra.Command, args []string) (Act, error)) *cobra.Command {
	var f Flags
	AddFlags(a, cmd, &f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		do, err := act(cmd, args)
		if err != nil {
			return err
		}
		return With(a, &f, do)
	}
	return cmd
}

// Command gives cmd the common flags and has it make one call: the one that request says,
// of the arguments and of cmd's own flags. show prints the answer; with --output json that
// is printed as it is, and show is not called. Its arguments are those of its usage line
// unless cmd says otherwise.
func Command[A any](a *term.App, cmd *cobra.Command, request func(args []string) (Request, error), show func(args []string, answer *A) error) *cobra.Command {
	return Acts(a, cmd, func(cmd *cobra.Command, args []string) (Act, error) {
		r, err := request(args)
		return func(s Talk) error {
			return Ask(cmd.Context(), s, r, func(answer *A) error { return show(args, answer) })
		}, err
	})
}

// Look is Command of a GET, which is tried for LookTimeout. path is what it asks, of the
// arguments.
func Look[A any](a *term.App, cmd *cobra.Command, path func(args []string) (string, error), show func(answer *A) error) *cobra.Command {
	Command(a, cmd, func(args []string) (Request, error) {
		at, err := path(args)
		return Get(at), err
	}, func(_ []string, answer *A) error { return show(answer) })
	Within(cmd, LookTimeout)
	return cmd
}

// At is the path of a Look that asks the same whatever its arguments are.
func At(path string) func(args []string) (string, error) {
	return func([]string) (string, error) { return path, nil }
}

// AtTask is the path of a Look at the task whose id is the first argument.
func AtTask(verb string) func(args []string) (string, error) {
	return func(args []string) (string, error) {
		id, err := ParseID(args[0])
		return TaskPath(id, verb), err
	}
}

// Ask makes a call and shows its answer; with --output json that is printed as it is, and
// show is not called.
func Ask[A any](ctx context.Context, s Talk, r Request, show func(answer *A) error) error {
	var answer A
	shown, err := s.Call(ctx, r, &answer)
	if err != nil || shown {
		return err
	}
	return show(&answer)
}
