package cron

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/slots.json")

// slots are the times that a plan has after another.
type slots struct {
	Cron     string   `json:"cron"`
	Timezone string   `json:"timezone"`
	After    string   `json:"after"`
	Next     []string `json:"next"`
}

// TestSlotsOfPage ensures that testdata/slots.json, which holds the page's own
// reckoning to this package's, is what this package computes.
func TestSlotsOfPage(t *testing.T) {
	path := filepath.Join("testdata", "slots.json")
	data, err := os.ReadFile(path)
	must(t, err)
	var cases []slots
	must(t, json.Unmarshal(data, &cases))
	for i := range cases {
		c := &cases[i]
		times, err := Plan{Cron: c.Cron, Timezone: c.Timezone}.Read()
		must(t, err)
		at, err := time.Parse(time.RFC3339, c.After)
		must(t, err)
		got := []string{}
		for ms, ok := times.Next(at.UnixMilli()); ok && len(got) < 5; ms, ok = times.Next(ms) {
			got = append(got, time.UnixMilli(ms).UTC().Format(time.RFC3339))
		}
		if *update {
			c.Next = got
			continue
		}
		if !slices.Equal(got, c.Next) {
			t.Errorf("%s in %s after %s: got %v, want %v", c.Cron, c.Timezone, c.After, got, c.Next)
		}
	}
	if *update {
		data, err := json.MarshalIndent(cases, "", " ")
		must(t, err)
		must(t, os.WriteFile(path, append(data, '\n'), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
