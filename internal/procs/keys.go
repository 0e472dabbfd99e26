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

// WriteKeys creates an API key without a rate for each name, and writes the file for the nodes
// to path. may says what each key may do, as the role and task_types of an entry. It returns
// the keys by name.
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
