package deploy

import (
	"fmt"
	"os"
	"testing"
)

// The tests run in the folder whose files they check.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../deploy"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
