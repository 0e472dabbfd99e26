package crash

import (
	"cmp"
	"flag"
	"os"
	"path"
	"testing"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// To run everything: make crashes.
var (
	crashEvery   = flag.Int("crash.every", 0, "TestCrash tries one of this many crashes; 0: of 268, or 67 of the whole proof")
	crashPattern = flag.String("crash.scripts", "load", "which scripts TestCrash plays: a pattern with *")
)

// TestCrash plays scripts on real processes whose disks record every change, and then
// starts clusters from the disks after a crash at each change: of one node, the leader, a
// majority, all. Everything acknowledged before the crash is there, no token is given out
// twice, and all nodes reach the same state.
func TestCrash(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts FUSE file systems: run it as root")
	}
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range crashScripts() {
		if ok, err := path.Match(*crashPattern, s.name); err != nil || !ok {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := recordCrash(t, s, binary)
			tried := 0
			crashCases(t, r, cmp.Or(*crashEvery, proof.Count(268, 67)), func(replay *lossyfs.Replay, c crashCase) {
				tried++
				judgeCrash(t, r, replay, c, s.mend)
			})
			t.Logf("%d changes of the disks, %d facts; %d crashes tried", r.journal.Len(), len(r.facts), tried)
			if tried == 0 {
				t.Error("no crash was tried")
			}
		})
	}
}

// TestBriefLog_fits checks that what the script compaction edits is still in the source:
// only make proof plays that script.
func TestBriefLog_fits(t *testing.T) {
	t.Parallel()
	root, err := procs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := briefLog.Changed(root, t.TempDir()); err != nil {
		t.Error(err)
	}
}
