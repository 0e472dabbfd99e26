package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
)

// beRelaxed in the environment makes the test binary set its timer slack and print it.
const beRelaxed = "CLAIMQ_TEST_IS_RELAXED"

func TestMain(m *testing.M) {
	if os.Getenv(beRelaxed) != "" {
		tellTimerSlack()
		return
	}
	os.Exit(m.Run())
}

func tellTimerSlack() {
	SetTimerSlack()
	told := make(chan string)
	go func() { // on some thread, not the first
		slack, ok := threadTimerSlack()
		told <- fmt.Sprintln(os.Getpid(), slack, ok)
	}()
	fmt.Print(<-told)
}

// The process keeps its id, its arguments and its output, and its threads have the slack.
func TestSetTimerSlack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), claimqtest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), beRelaxed+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintln(cmd.Process.Pid, timerSlack, true); string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
