package outbox_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"

	"github.com/claimq/claimq/client/outbox"
	"github.com/claimq/claimq/internal/testwait"
)

// database is a real database server that listens only on a socket in its folder.
type database struct {
	dialect      outbox.Dialect
	driver, name string // for sql.Open
	server       []string
	owner        *syscall.Credential // nil: the test's user
	process      *os.Process
	ended        chan struct{}
}

// newPostgres starts a PostgreSQL, which has to be installed (.ci/tools does it).
func newPostgres(t *testing.T) *database {
	t.Helper()
	bin := program(t, "postgresql", "/usr/lib/postgresql/*/bin/postgres", "postgres")
	d := &database{dialect: outbox.Postgres, driver: "postgres"}
	folder := d.folder(t, "postgres")
	data := filepath.Join(folder, "data")
	d.run(t, filepath.Join(filepath.Dir(bin), "initdb"), "-D", data, "-U", "claimq", "-A", "trust", "-E", "UTF8", "--no-sync")
	d.server = []string{bin, "-D", data, "-k", folder, "-c", "listen_addresses="}
	d.name = "host=" + folder + " user=claimq dbname=postgres sslmode=disable"
	d.start(t)
	return d
}

// newMariaDB starts a MariaDB, which has to be installed (.ci/tools does it).
func newMariaDB(t *testing.T) *database {
	t.Helper()
	bin := program(t, "mariadb-server", "mariadbd", "/usr/sbin/mariadbd")
	d := &database{dialect: outbox.MySQL, driver: "mysql"}
	folder := d.folder(t, "mysql")
	data, socket := filepath.Join(folder, "data"), filepath.Join(folder, "s")
	d.run(t, "mariadb-install-db", "--no-defaults", "--datadir="+data, "--tmpdir="+folder, "--auth-root-authentication-method=normal", "--skip-test-db")
	d.server = []string{
		bin, "--no-defaults", "--datadir=" + data, "--tmpdir=" + folder, "--socket=" + socket, "--skip-networking", "--pid-file=" + filepath.Join(folder, "pid"),
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
	}
	d.name = "root@unix(" + socket + ")/mysql?parseTime=true"
	d.start(t)
	return d
}

// program returns the path of an installed program: the first of the names or patterns that exists.
func program(t *testing.T, debian string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if found, _ := filepath.Glob(name); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Fatalf("%s is missing: apt-get install %s, or .ci/tools", names[0], debian)
	return ""
}

// folder makes the server's folder, with a path short enough for a socket. A server that refuses to run as root runs
// as its own user.
func (d *database) folder(t *testing.T, owner string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if os.Getuid() == 0 {
		u, err := user.Lookup(owner)
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(folder, uid, gid); err != nil {
			t.Fatal(err)
		}
		d.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return folder
}

func (d *database) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.owner}
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start starts the server and waits until it answers. It ends with the test. PostgreSQL refuses to start while
// processes of a killed server exist; then it is started again.
func (d *database) start(t *testing.T) {
	t.Helper()
	d.launch(t)
	db := d.open(t)
	testwait.Until(t, "the database", func() bool {
		select {
		case <-d.ended:
			d.launch(t)
		default:
		}
		return db.PingContext(t.Context()) == nil
	})
}

// launch starts the server's process.
func (d *database) launch(t *testing.T) {
	t.Helper()
	started, ended := make(chan error, 1), make(chan struct{})
	cmd := exec.Command(d.server[0], d.server[1:]...) //nolint:noctx // it is killed at the end
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.owner, Pdeathsig: syscall.SIGKILL}
	cmd.Dir = "/"
	go func() {
		defer close(ended)
		runtime.LockOSThread() // Pdeathsig ties the process to the thread that starts it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it was killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	d.process, d.ended = cmd.Process, ended
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
}

// kill ends the server at once, like a crash.
func (d *database) kill(t *testing.T) {
	t.Helper()
	if err := d.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.ended
}

func (d *database) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func mustExec(ctx context.Context, t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(ctx, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
