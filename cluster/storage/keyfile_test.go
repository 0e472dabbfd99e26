package storage

import (
	"os"
	"path/filepath"
	"testing"
)

// A folder has one key for good, which no other user may read and from which its identity
// is derived; without it, or with another one, a node refuses the folder.
func TestDataDir_keepsItsKey(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	file := filepath.Join(path, nodeKeyFileName)
	d := mustOpenDataDir(t, path)
	id, key := d.Identity(), d.key
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	d = mustOpenDataDir(t, path)
	if !d.key.Equal(key) || d.Identity().UUID != id.UUID {
		t.Errorf("another key or identity: %+v", d.Identity())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := mustOpenDataDir(t, t.TempDir())
	another, err := os.ReadFile(filepath.Join(other.path, nodeKeyFileName))
	if err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string][]byte{"missing": nil, "another node": another, "no private key in PEM": good[:20]} {
		if content == nil {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, content, dataFileMode)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err := OpenDir(path, "n1")
		wantError(t, err, ErrCorruptIdentity, nodeKeyFileName, what)
		findings, err := Examine(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		bad := false
		for _, f := range findings {
			bad = bad || f.Part == "identity" && !f.OK && f.Advice != ""
		}
		if !bad {
			t.Errorf("%s: the doctor finds %+v", what, findings)
		}
	}

	// A start that was interrupted between key and identity continues with that key.
	if err := os.WriteFile(file, good, dataFileMode); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, IdentityFile)); err != nil {
		t.Fatal(err)
	}
	if again := mustOpenDataDir(t, path); again.Identity().UUID != id.UUID {
		t.Errorf("got %+v", again.Identity())
	}
}
