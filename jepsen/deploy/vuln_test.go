package deploy

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// CI checks for known vulnerabilities where it can reach their database, and says so where
// it cannot.
func TestVuln(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	// A fake make reports its target and claims to have found something.
	if err := os.WriteFile(filepath.Join(bin, "make"), []byte("#!/bin/sh\necho made $1 by $GOVULNDB\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	look := func(database string) (string, int) {
		cmd := exec.CommandContext(t.Context(), "../.ci/vuln")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GOVULNDB="+database)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index/db.json" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer database.Close()
	if out, code := look(database.URL); code != 3 || out != "made vuln by "+database.URL+"\n" {
		t.Errorf("with a database: %d, %s", code, out)
	}
	for _, gone := range []string{database.URL + "/none", "http://127.0.0.1:1"} {
		if out, code := look(gone); code != 0 || !strings.HasPrefix(out, "known vulnerabilities: NOT CHECKED, "+gone+" cannot be reached: ") || strings.Count(out, "\n") != 1 {
			t.Errorf("without a database: %d, %s", code, out)
		}
	}
}
