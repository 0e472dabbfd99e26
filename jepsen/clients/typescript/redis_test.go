package typescript

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/jepsen/clients/redistest"
)

// The programs of docs/from-redis.md: claimq does the same with a task as BullMQ
// does with a job on Redis.
func TestFromRedis(t *testing.T) {
	t.Parallel()
	dir := built(t)
	node := runtimes(t)["node20"][0]
	bullmq, err := filepath.Abs(filepath.Join(tools, "bullmq"))
	if err != nil {
		t.Fatal(err)
	}
	env := slices.Concat(os.Environ(), environment(t), []string{"PATH=" + scratch + ":" + filepath.Dir(node) + ":" + os.Getenv("PATH")})
	var order []string
	for _, p := range redistest.Programs(t, "../../docs/from-redis.md", "mails.js", redistest.Redis(t)) {
		order = append(order, p.With)
		// Below the package its own name is known, too.
		folder := filepath.Join(dir, "redis", p.With)
		modules := filepath.Join(folder, "node_modules")
		if err := os.MkdirAll(modules, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(bullmq, filepath.Join(modules, "bullmq")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "mails.js"), []byte(p.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		endpoint := "CLAIMQ_ENDPOINTS=" + redistest.TestServer(t, filepath.Join(scratch, "claimq"))
		redistest.SendsMail(t, p, folder, append(slices.Clip(env), endpoint), "node mails.js submit")
	}
	if got := strings.Join(order, " "); got != "BullMQ claimq" {
		t.Errorf("docs/from-redis.md has programs with %q", got)
	}
}
