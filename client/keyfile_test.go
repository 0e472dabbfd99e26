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

// The key in the file is sent. When it is refused and the file has another one, that is sent.
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

// Follow continues with a new key from the file, whether the old one is refused at the beginning or later.
func TestClient_Follow_keyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	writeKey := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	writeKey("first")
	over := []string{"event: error", `data: {"success":false,"error":"E","code":"unauthorized"}`, ""}
	renewed := func(key string, r reply) reply {
		return func(w http.ResponseWriter, req *http.Request) { writeKey(key); r(w, req) }
	}
	s, server := node(t,
		renewed("second", streams(append([]string{event("5.0")}, over...)...)),
		renewed("third", refuses(wire.CodeUnauthorized)),
		streams(append([]string{event("6.0")}, over...)...))
	c, err := New(Config{Endpoints: []string{server.URL}, APIKeyFile: path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []string
	for e, err := range c.Follow(t.Context(), EventFilter{}) {
		if err != nil {
			if !errors.Is(err, ErrUnauthorized) {
				t.Errorf("it ended with %v", err)
			}
			break
		}
		got = append(got, e.Place)
	}
	for _, r := range s.requests() {
		got = append(got, r.key)
	}
	if got := strings.Join(got, " "); got != "5.0 6.0 first second third" {
		t.Errorf("events and keys: %s", got)
	}
}
