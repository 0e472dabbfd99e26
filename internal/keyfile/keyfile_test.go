package keyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A new key in the file is used after a second, and at once if the old one was refused; if
// the file has none, the old one stays.
func TestFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "key")
		write(t, path, "first\n")
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, " second \n")
		if got := f.Key(); got != "first" {
			t.Errorf("at once: %q", got)
		}
		<-time.After(lookInterval)
		if got := f.Key(); got != "second" {
			t.Errorf("a second later: %q", got)
		}
		write(t, path, "third")
		if !f.Changed("second") || f.Changed("third") || f.Key() != "third" {
			t.Errorf("after a refusal: %q", f.Key())
		}
		for _, text := range []string{"", "a\nb", "é", strings.Repeat("k", bytesMax+1)} {
			write(t, path, text)
			<-time.After(lookInterval)
			if got := f.Key(); got != "third" {
				t.Errorf("%.9q in the file: %.9q", text, got)
			}
			if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%.9q: %v", text, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if f.Changed("third") {
			t.Error("a file that is gone has another key")
		}
		if _, err := Open(path); err == nil {
			t.Error("a file that is not there is opened")
		}
	})
}
