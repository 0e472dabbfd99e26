package python

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/clients/redistest"
)

// The programs of docs/from-redis.md: claimq does the same with a task as
// Celery and RQ do on Redis.
func TestFromRedis(t *testing.T) {
	t.Parallel()
	need(t, "celery", "python3-celery")
	need(t, "rq", "python3-rq")
	binary, err := procs.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PYTHONPATH="+absolute(t, "src"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		"PATH="+filepath.Dir(binary)+":"+filepath.Dir(interpreter)+":"+os.Getenv("PATH"))
	var order []string
	for _, p := range redistest.Programs(t, "../../docs/from-redis.md", "mails.py", redistest.Redis(t)) {
		order = append(order, p.With)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "mails.py"), []byte(p.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		redistest.SendsMail(t, p, dir, append(slices.Clip(env), "CLAIMQ_ENDPOINTS="+redistest.TestServer(t, binary)), "python3 mails.py")
	}
	if got := strings.Join(order, " "); got != "Celery claimq RQ claimq" {
		t.Errorf("docs/from-redis.md has programs with %q", got)
	}
}
