package client

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
)

// A key of a file is sent; once it is refused and the file has another one, that is sent.
func TestClient_KeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	writeKey := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	writeKey("first\n")
	s, server := node(t,
		says(200, okAnswer),
		func(w http.ResponseWriter, r *http.Request) { // it expires
			writeKey("second\n")
			refuses(wire.CodeUnauthorized)(w, r)
		},
		says(200, okAnswer),
		refuses(wire.CodeUnauthorized))
	c, err := New(Config{Endpoints: []string{server.URL}, APIKeyFile: path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	get := Request{Method: http.MethodGet, Path: "/api/tasks/17"}
	for range 2 {
		if _, err := c.Do(t.Context(), get); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Do(t.Context(), get); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("a key that is refused and stays: %v", err)
	}
	var keys []string
	for _, r := range s.requests() {
		keys = append(keys, r.key)
	}
	if got := strings.Join(keys, " "); got != "first first second second" {
		t.Errorf("it sent %s", got)
	}
	if _, err := New(Config{APIKeyFile: path, APIKey: "k"}); err == nil {
		t.Error("a key and a file are taken")
	}
	if _, err := New(Config{APIKeyFile: path + ".no"}); err == nil || !strings.Contains(err.Error(), "API key file") {
		t.Errorf("a file that is not there: %v", err)
	}
}
