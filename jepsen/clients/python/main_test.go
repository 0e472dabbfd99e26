package python

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
)

// The tests run in the folder of the client that they check, all at a time: most wait for processes more than they
// compute.
func TestMain(m *testing.M) {
	if err := errors.Join(os.Chdir("../../../clients/python"), flag.Set("test.parallel", "16")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
