package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/cluster/storage"
)

// wrong returns the parts that are wrong, and the texts about them.
func wrong(findings []storage.Finding) (parts []string, texts string) {
	for _, f := range findings {
		if !f.OK {
			parts = append(parts, f.Part)
			texts += f.Text + " / " + f.Advice + "\n"
		}
	}
	return parts, texts
}

// contents returns a hash of every file below dir, by name.
func contents(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	files := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// usedFolder returns the data folder of a stopped node with a snapshot and log after it.
func usedFolder(t *testing.T) string {
	t.Helper()
	cfg := testConfig(t, "n1", t.TempDir(), "127.0.0.1:0")
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	for range 20 {
		submitOne(t, n)
	}
	if index, err := n.TakeSnapshot(context.Background()); err != nil || index < 20 {
		t.Fatalf("snapshot at %d: %v", index, err)
	}
	for range 20 {
		submitOne(t, n)
	}
	if findings, err := storage.Examine(cfg.DataDir, 1); err != nil || len(findings) != 1 || findings[0].OK || !strings.Contains(findings[0].Text, fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("of a running node: %+v, %v", findings, err)
	}
	closeNode(t, n)
	return cfg.DataDir
}

// copyDir copies a folder.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestExamine(t *testing.T) {
	t.Parallel()
	dir := usedFolder(t)
	// A crash left this of a snapshot that was being removed.
	left := filepath.Join(dir, "snapshots", "9-9-9.gone.tmp")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "state.bin"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	findings, err := storage.Examine(dir, 1)
	if parts, texts := wrong(findings); err != nil || len(parts) > 0 || len(findings) != 6 {
		t.Fatalf("a sound folder: %+v %v\n%s", findings, err, texts)
	}
	if after := contents(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the folder was changed")
	}
	if err := os.RemoveAll(left); err != nil {
		t.Fatal(err)
	}
	if parts, texts := wrong(mustExamine(t, dir, 1<<62)); len(parts) != 1 || parts[0] != "disk" {
		t.Errorf("a full disk: %s", texts)
	}
	for _, damage := range []struct{ file, part string }{
		{"identity.json", "identity"},
		{"raft.tail", "log"},
		{filepath.Join("snapshots", "*", "state.bin"), "snapshots"},
		{filepath.Join("snapshots", "*", "meta.json"), "snapshots"},
		{filepath.Join("wal", "*.wal"), "log"},
	} {
		bad := copyDir(t, dir)
		flipIn(t, filepath.Join(bad, damage.file))
		parts, texts := wrong(mustExamine(t, bad, 1))
		if len(parts) == 0 || parts[0] != damage.part || !strings.Contains(texts, "claimq cluster remove") {
			t.Errorf("a flipped bit in %s: %v\n%s", damage.file, parts, texts)
		}
	}
	gone := copyDir(t, dir)
	if err := os.RemoveAll(filepath.Join(gone, "snapshots")); err != nil {
		t.Fatal(err)
	}
	// The log still begins at its first entry, so nothing is missing.
	if parts, texts := wrong(mustExamine(t, gone, 1)); len(parts) > 0 {
		t.Errorf("without a snapshot that the log does not need: %s", texts)
	}
}

func mustExamine(t *testing.T, dir string, freeMin uint64) []storage.Finding {
	t.Helper()
	findings, err := storage.Examine(dir, freeMin)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// flipIn flips a bit in the middle of the used part of the one file that matches pattern.
func flipIn(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// Each entry is changed, if it is a log: free pages of raft.db hold old entries, which
	// are never read.
	flipped := bytes.ReplaceAll(b, []byte("mail"), []byte("mahl"))
	if bytes.Equal(flipped, b) {
		flipped[len(bytes.TrimRight(b, "\x00"))/2] ^= 4
	}
	if err := os.WriteFile(files[0], flipped, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestExamine_other(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if parts, texts := wrong(mustExamine(t, dir, 1)); len(parts) > 0 {
		t.Errorf("an empty folder: %s", texts)
	}
	if _, err := storage.Examine(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("a folder that is not there is examined")
	}
	if err := os.WriteFile(filepath.Join(dir, "raft.db"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if parts, texts := wrong(mustExamine(t, dir, 1)); len(parts) != 1 || parts[0] != "identity" {
		t.Errorf("a log without an identity: %s", texts)
	}
	if _, err := storage.Examine(filepath.Join(dir, "raft.db"), 0); err == nil {
		t.Error("a file is examined")
	}
}
