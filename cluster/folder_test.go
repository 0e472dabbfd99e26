package cluster

import (
	"testing"

	"github.com/claimq/claimq/cluster/storage"
)

// testFolder is a data folder with its stores open.
type testFolder struct {
	*storage.Stores
	dir *storage.Dir
}

// openFolder opens the folder at path and its stores. Fatal errors fail the test, unless
// cfg says otherwise.
func openFolder(t *testing.T, path string, cfg storage.Config) testFolder {
	t.Helper()
	dir, err := storage.OpenDir(path, "n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	if cfg.Fatal == nil {
		cfg.Fatal = func(err error) { t.Errorf("fatal: %v", err) }
	}
	s, err := storage.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return testFolder{Stores: s, dir: dir}
}

func (f testFolder) close(t *testing.T) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.dir.Close(); err != nil {
		t.Fatal(err)
	}
}
