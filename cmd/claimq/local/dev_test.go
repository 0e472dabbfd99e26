package local

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// A node that ends is started again at the next look, not at once: one that cannot start
// would be started without end.
func TestDevWatch_restarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := &localNode{id: "n1", logPath: filepath.Join(dir, "n1.log")}
	c := &localCluster{binary: "/bin/false", nodes: []*localNode{n}, exits: make(chan *localNode, 1)}
	defer c.stop()
	if err := c.start(n); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := devWatch{c: c, a: &term.App{Stdout: &out}, file: filepath.Join(dir, devLeaderFile), restart: true}
	for looks := range 3 {
		if err := w.ended(<-c.exits); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "is started again"); got != looks {
			t.Fatalf("after %d looks it was started %d times again:\n%s", looks, got, out.String())
		}
		if err := w.startFallen(); err != nil {
			t.Fatal(err)
		}
	}
}
