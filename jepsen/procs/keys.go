package procs

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// WriteKeys makes an API key for each name, without a rate, and writes what nodes need to know
// of them into the file at path: may has what each may do, as role and task_types of an entry.
// It returns the keys by their names.
func WriteKeys(path string, may map[string]string) (keys map[string]string, err error) {
	keys = map[string]string{}
	var entries strings.Builder
	entries.WriteString("keys:\n")
	for _, name := range slices.Sorted(maps.Keys(may)) {
		keys[name] = "claimq_" + strings.ToLower(rand.Text()+rand.Text())
		fmt.Fprintf(&entries, "  - {name: %s, key_sha256: %x, rate_limit_per_minute: 0, %s}\n", name, sha256.Sum256([]byte(keys[name])), may[name])
	}
	return keys, os.WriteFile(path, []byte(entries.String()), 0o600)
}
