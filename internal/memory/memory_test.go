package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCgroup ensures that the limits of the process's own cgroup and of each one above it
// count.
func TestCgroup(t *testing.T) {
	t.Parallel()
	const v1, v2 = "sys/fs/cgroup/memory/", "sys/fs/cgroup/"
	for name, test := range map[string]struct {
		self   string
		bounds map[string]string
		want   uint64
	}{
		"version 2, its own":         {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "500\n", v2 + "a/memory.max": "max\n"}, 500},
		"version 2, one around it":   {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "max\n", v2 + "a/memory.max": "400\n"}, 400},
		"version 2, the least":       {"0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "700\n", v2 + "a/memory.max": "600\n"}, 600},
		"version 2, in a container":  {"0::/\n", map[string]string{v2 + "memory.max": "300\n"}, 300},
		"version 2, the host's path": {"0::/../../kubepods/x\n", map[string]string{v2 + "memory.max": "310\n"}, 310},
		"version 1, nested":          {"4:cpu,memory:/a/b\n0::/\n", map[string]string{v1 + "a/memory.limit_in_bytes": "200\n", v1 + "memory.limit_in_bytes": "9223372036854771712\n"}, 200},
		"version 1, another's":       {"4:memory:/a\n", map[string]string{v1 + "b/memory.limit_in_bytes": "100\n"}, 0},
		"both":                       {"4:memory:/a\n0::/u\n", map[string]string{v1 + "a/memory.limit_in_bytes": "200\n", v2 + "unified/u/memory.max": "150\n"}, 150},
		"none":                       {"0::/a\n", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write := func(file, text string) {
				file = filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/self/cgroup", test.self)
			for file, text := range test.bounds {
				write(file, text)
			}
			if got, ok := cgroup(root); got != test.want || ok != (test.want > 0) {
				t.Errorf("%d, %v, want %d", got, ok, test.want)
			}
		})
	}
}
