package session

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// Act is the work of a command with the nodes.
type Act func(s Talk) error

// Acts gives cmd the common flags and makes it run the Act that act returns, unless act rejects the arguments or
// cmd's flags.
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

// Command gives cmd the common flags and makes it perform one call, which request makes from the arguments and cmd's
// flags. show prints the answer; with --output json the answer is printed unchanged instead. The usage line gives
// the number of arguments unless cmd says otherwise.
func Command[A any](a *term.App, cmd *cobra.Command, request func(args []string) (Request, error), show func(args []string, answer *A) error) *cobra.Command {
	return Acts(a, cmd, func(cmd *cobra.Command, args []string) (Act, error) {
		r, err := request(args)
		return func(s Talk) error {
			return Ask(cmd.Context(), s, r, func(answer *A) error { return show(args, answer) })
		}, err
	})
}

// Look is Command for a GET, with LookTimeout. path makes its path from the arguments.
func Look[A any](a *term.App, cmd *cobra.Command, path func(args []string) (string, error), show func(answer *A) error) *cobra.Command {
	Command(a, cmd, func(args []string) (Request, error) {
		at, err := path(args)
		return Get(at), err
	}, func(_ []string, answer *A) error { return show(answer) })
	Within(cmd, LookTimeout)
	return cmd
}

// At returns the path function of a Look whose path does not depend on its arguments.
func At(path string) func(args []string) (string, error) {
	return func([]string) (string, error) { return path, nil }
}

// AtTask returns the path function of a Look at the task in the first argument.
func AtTask(verb string) func(args []string) (string, error) {
	return func(args []string) (string, error) {
		id, err := ParseID(args[0])
		return TaskPath(id, verb), err
	}
}

// Ask makes a call and shows its answer; with --output json the answer is printed unchanged and show is not called.
func Ask[A any](ctx context.Context, s Talk, r Request, show func(answer *A) error) error {
	var answer A
	shown, err := s.Call(ctx, r, &answer)
	if err != nil || shown {
		return err
	}
	return show(&answer)
}

// clearScreen clears the screen and moves the cursor to its top.
const clearScreen = "\x1b[H\x1b[2J"

// Watch calls show at every interval until ctx ends or the server refuses. Each look begins with the time, on a
// terminal at the top of a cleared screen. If no node answers, Watch says so and looks again.
func Watch(ctx context.Context, s Talk, interval time.Duration, show func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if s.Flags.Output != "json" {
			clear := ""
			if s.App.Width > 0 {
				clear = clearScreen
			}
			fmt.Fprintf(s.App.Stdout, "%s%s UTC\n\n", clear, s.App.Clock().UTC().Format(term.ExactTime))
		}
		err := show()
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C ends it
		case err != nil && term.ExitCode(err) != term.ExitUnknown:
			return err
		case err != nil:
			fmt.Fprintln(s.App.Stderr, "claimq: "+term.ErrorText(nil, err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
