package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// A client command warns if others may read its private key.
func TestClient_OpenKeyFile(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "a")
	p := certstest.Write(t, t.TempDir(), a.Issue([]string{"worker"}), a)
	warned := func() bool {
		var errs bytes.Buffer
		app := &term.App{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &errs}
		run(t.Context(), app, []string{"stats", "--endpoint", "https://127.0.0.1:1", "--timeout", "1ms", "--cert-file", p.Cert, "--key-file", p.Key})
		return strings.Contains(errs.String(), "warning: others may read "+p.Key+" (mode 0644): chmod 0600 "+p.Key+"\n")
	}
	if warned() {
		t.Error("warned of a file with the mode 0600")
	}
	if err := os.Chmod(p.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	if !warned() {
		t.Error("not warned of a file with the mode 0644")
	}
}
