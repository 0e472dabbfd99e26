package outbox_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/client/outbox"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// relayOf is an environment variable that makes the test binary a relay. Its value has the dialect, the driver, the
// database's name and the cluster's URL, separated by tabs.
const relayOf = "CLAIMQ_TEST_RELAY"

// relayRuns is printed by a relay once it runs.
const relayRuns = "the relay runs"

func TestMain(m *testing.M) {
	if of := os.Getenv(relayOf); of != "" {
		fmt.Fprintln(os.Stderr, runRelay(strings.Split(of, "\t")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func runRelay(of []string) error {
	dialect, err := strconv.Atoi(of[0])
	if err != nil {
		return err
	}
	db, err := sql.Open(of[1], of[2])
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Endpoints: []string{of[3]}, APIKey: "k"})
	if err != nil {
		return err
	}
	box, err := outbox.New(outbox.Dialect(dialect), "")
	if err != nil {
		return err
	}
	relay, err := box.NewRelay(db, c, outbox.RelayConfig{Batch: 7, Interval: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Println(relayRuns)
	return relay.Run(context.Background())
}

// TestRelay runs all tests on one database after the other, because starting them takes seconds.
func TestRelay(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *database{"postgres": newPostgres, "mariadb": newMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			t.Run("refused", func(t *testing.T) { testRefused(t, d) })
			t.Run("foreign", func(t *testing.T) { testForeign(t, d) })
			t.Run("not ours", func(t *testing.T) { testNotOurs(t, d) })
			t.Run("away", func(t *testing.T) { testAway(t, d) })
			t.Run("run", func(t *testing.T) { testRun(t, d) })
			t.Run("run again", func(t *testing.T) { testRunAgain(t, d) })
			t.Run("killed", func(t *testing.T) { testKilled(t, d) }) // last, because a database that it starts ends with it
		})
	}
}

// setUp makes the tables: the outbox, and orders of the application.
func setUp(t *testing.T, d *database) (*outbox.Outbox, *sql.DB) {
	t.Helper()
	box, err := outbox.New(d.dialect, "")
	if err != nil {
		t.Fatal(err)
	}
	db := d.open(t)
	mustExec(t.Context(), t, db, "DROP TABLE IF EXISTS claimq_outbox, orders")
	mustExec(t.Context(), t, db, box.Schema())
	mustExec(t.Context(), t, db, box.Schema()) // again, when it exists
	mustExec(t.Context(), t, db, "CREATE TABLE orders (id bigint PRIMARY KEY)")
	return box, db
}

// order makes order n and submits a task for it in one transaction, which may be rolled back.
func order(ctx context.Context, box *outbox.Outbox, db *sql.DB, n int, rollBack bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO orders (id) VALUES (%d)", n)); err != nil {
		return err
	}
	if err := box.Submit(ctx, tx, client.Task{TaskType: "order", Payload: []byte(strconv.Itoa(n))}); err != nil || rollBack {
		return err
	}
	return tx.Commit()
}

// numbers returns the numbers that a query yields, in order.
func numbers(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Although relays are killed at any moment, and the database once, every committed order gets exactly one task, and
// no other order gets one.
func testKilled(t *testing.T, d *database) {
	box, db := setUp(t, d)
	cluster := clienttest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	var producers, relays sync.WaitGroup
	var made, killed atomic.Int64
	for p := range 4 {
		producers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				for i%10 == 0 && waiting(ctx, db) > waitingMax && pause.For(ctx, 10*time.Millisecond) {
				}
				// If it fails, it may have been committed or not; the table of orders shows it.
				if order(ctx, box, db, p*1_000_000+i, i%4 == 3) == nil {
					made.Add(1)
				}
			}
		})
	}
	for range 2 {
		relays.Go(func() {
			for ctx.Err() == nil {
				if err := killRelay(ctx, d, cluster.URL()); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				killed.Add(1)
			}
		})
	}
	testwait.Until(t, "orders and kills", func() bool { return made.Load() > 200 && killed.Load() > 8 })
	d.kill(t)
	d.start(t)
	before, kills := made.Load(), killed.Load()
	testwait.Until(t, "more of them", func() bool { return made.Load() > before+200 && killed.Load() > kills+8 })
	stop()
	producers.Wait()
	relays.Wait()
	rest := newRelay(t, box, db, cluster, outbox.RelayConfig{})
	testwait.Until(t, "an empty outbox", func() bool {
		moved, err := rest.Pass(t.Context())
		return err == nil && moved.Submitted == 0 && len(numbers(t, db, "SELECT id FROM claimq_outbox")) == 0
	})
	tasks := map[string]int{}
	for task, err := range cluster.Client().Tasks(t.Context(), client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		tasks[string(task.Payload)]++
	}
	for _, n := range numbers(t, db, "SELECT id FROM orders") {
		if tasks[n] != 1 {
			t.Errorf("order %s has %d tasks", n, tasks[n])
		}
		delete(tasks, n)
	}
	if len(tasks) > 0 {
		t.Errorf("%d tasks of orders that there are not: %v", len(tasks), tasks)
	}
}

// waitingMax bounds the rows that wait for a relay while relays are killed.
const waitingMax = 300

// waiting returns the number of rows in the outbox, 0 while the database is down.
func waiting(ctx context.Context, db *sql.DB) (rows int) {
	_ = db.QueryRowContext(ctx, "SELECT count(*) FROM claimq_outbox").Scan(&rows)
	return rows
}

// killRelay starts a process with a relay, and kills it at some moment once it runs, or when ctx ends.
func killRelay(ctx context.Context, d *database, cluster string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), strings.Join([]string{relayOf + "=" + strconv.Itoa(int(d.dialect)), d.driver, d.name, cluster}, "\t"))
	cmd.SysProcAttr = procs.ChildAttr()
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err == nil && line == relayRuns+"\n" {
		pause.For(ctx, time.Duration(rand.IntN(400))*time.Millisecond)
	}
	_ = cmd.Process.Kill() // it may have ended because the database was killed
	_ = cmd.Wait()
	if err != nil {
		return fmt.Errorf("a relay did not run: %w", err)
	}
	return nil
}

func newRelay(t *testing.T, box *outbox.Outbox, db *sql.DB, cluster *clienttest.Server, cfg outbox.RelayConfig) *outbox.Relay {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	r, err := box.NewRelay(db, cluster.Client(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A refused row is kept with the reason and does not hold up others, whether its task makes the whole request fail or
// only itself. It is submitted once it is corrected.
func testRefused(t *testing.T, d *database) {
	box, db := setUp(t, d)
	cluster := clienttest.New(t)
	for n, bad := range []string{"", `{"params":1,"大きさ":1}`, "", "this is no JSON", ""} {
		if bad != "" {
			mustExec(t.Context(), t, db, "INSERT INTO claimq_outbox (task) VALUES ('"+bad+"')")
		} else if err := order(t.Context(), box, db, n, false); err != nil {
			t.Fatal(err)
		}
	}
	r := newRelay(t, box, db, cluster, outbox.RelayConfig{})
	if moved, err := r.Pass(t.Context()); err != nil || moved != (outbox.Moved{Submitted: 3, Refused: 2}) {
		t.Errorf("got %+v, %v", moved, err)
	}
	reasons := numbers(t, db, "SELECT reason FROM claimq_outbox WHERE is_refused ORDER BY id")
	if len(reasons) != 2 || !strings.Contains(reasons[0], "Unknown field") || !strings.Contains(reasons[1], "JSON") {
		t.Errorf("the reasons are %q", reasons)
	}
	mustExec(t.Context(), t, db, `UPDATE claimq_outbox SET task = '{"params":1}', is_refused = false WHERE is_refused`)
	if moved, err := r.Pass(t.Context()); err != nil || moved.Submitted != 2 {
		t.Errorf("got %+v, %v", moved, err)
	}
}

// narrowed returns a client whose key may not submit type mail: a request with such a task is refused as a whole. If
// large is set, a proxy refuses requests with more bytes instead.
func narrowed(t *testing.T, cluster *clienttest.Server, large int) *client.Client {
	t.Helper()
	to, err := url.Parse(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		case large > 0 && len(body) > large:
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = io.WriteString(w, `{"success":false,"error":"too large","code":"payload_too_large"}`)
		case bytes.Contains(body, []byte(`"task_type":"mail"`)):
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"success":false,"error":"not for mail","code":"forbidden","field":"task_type"}`)
		default:
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{Endpoints: []string{s.URL}, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A row that a proxy refuses as too large, without a code of claimq, is not marked: the limit is the proxy's, and the
// row goes once that is higher.
func testNotOurs(t *testing.T, d *database) {
	box, db := setUp(t, d)
	cluster := clienttest.New(t)
	to, err := url.Parse(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	var most atomic.Int64
	most.Store(1_000)
	proxy := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > most.Load() {
			http.Error(w, "<h1>413 Request Entity Too Large</h1>", http.StatusRequestEntityTooLarge)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{Endpoints: []string{s.URL}, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, payload := range []string{"1", strings.Repeat("2", 5_000), "3"} {
		if err := box.Submit(t.Context(), db, client.Task{TaskType: "order", Payload: []byte(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := box.NewRelay(db, c, outbox.RelayConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := r.Pass(t.Context())
	if left := numbers(t, db, "SELECT id FROM claimq_outbox WHERE NOT is_refused"); err == nil || moved.Refused > 0 || len(left) != 3-moved.Submitted {
		t.Errorf("moved %+v, %v; %d are left", moved, err, len(left))
	}
	most.Store(1 << 20)
	testwait.Until(t, "an empty outbox", func() bool {
		_, err := r.Pass(t.Context())
		return err == nil && len(numbers(t, db, "SELECT id FROM claimq_outbox")) == 0
	})
}

// Rows of a type that the relay's key may not submit do not hold up others, even if there are more than one pass
// takes. They, and only they, are kept with their reason.
func testForeign(t *testing.T, d *database) {
	big := strings.Repeat("x", 500_000)
	for _, c := range []struct {
		name    string
		foreign []int // indexes of the rows
		orders  int
		payload string
		batch   int
		large   int
	}{
		{name: "one among few", foreign: []int{2}, orders: 5},
		{name: "in the second request", foreign: []int{12}, orders: 20, payload: big},
		{name: "in the first of two", foreign: []int{1}, orders: 20, payload: big},
		{name: "each", foreign: []int{0, 1, 2}},
		{name: "more than a pass takes", foreign: []int{0, 1, 2, 3}, orders: 2, batch: 2},
		{name: "one a pass", foreign: []int{0}, orders: 1, batch: 1},
		{name: "behind a proxy that takes little", foreign: []int{3}, orders: 5, payload: big[:1000], large: 4000},
	} {
		t.Run(c.name, func(t *testing.T) {
			box, db := setUp(t, d)
			cluster := clienttest.New(t)
			submit := func(task client.Task) {
				if err := box.Submit(t.Context(), db, task); err != nil {
					t.Fatal(err)
				}
			}
			for n := range c.orders + len(c.foreign) {
				if slices.Contains(c.foreign, n) {
					submit(client.Task{TaskType: "mail", Payload: []byte("mail")})
				} else {
					submit(client.Task{TaskType: "order", Payload: []byte(c.payload + strconv.Itoa(n))})
				}
			}
			r, err := box.NewRelay(db, narrowed(t, cluster, c.large), outbox.RelayConfig{Batch: c.batch, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			var all outbox.Moved
			for {
				moved, err := r.Pass(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if moved == (outbox.Moved{}) {
					break
				}
				all.Submitted, all.Refused = all.Submitted+moved.Submitted, all.Refused+moved.Refused
			}
			if want := (outbox.Moved{Submitted: c.orders, Refused: len(c.foreign)}); all != want {
				t.Errorf("moved %+v, want %+v", all, want)
			}
			if pending, err := cluster.Client().List(t.Context(), client.StatusPending); err != nil || len(pending) != c.orders {
				t.Errorf("%d tasks, want %d: %v", len(pending), c.orders, err)
			}
			for _, reason := range numbers(t, db, "SELECT reason FROM claimq_outbox WHERE is_refused") {
				if !strings.Contains(reason, "not for mail") {
					t.Errorf("the reason is %q", reason)
				}
			}
		})
	}
}

// A cluster that does not answer, or refuses the key, refuses no rows.
func testAway(t *testing.T, d *database) {
	box, db := setUp(t, d)
	cluster := clienttest.New(t)
	if err := order(t.Context(), box, db, 1, false); err != nil {
		t.Fatal(err)
	}
	for status, code := range map[int]string{401: "unauthorized", 403: "forbidden", 429: "rate_limited", 503: "no_leader"} {
		away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"success":false,"error":"no","code":%q}`, code)
		}))
		defer away.Close()
		c, err := client.New(client.Config{Endpoints: []string{away.URL}, Timeout: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		r, err := box.NewRelay(db, c, outbox.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if moved, err := r.Pass(t.Context()); err == nil || moved != (outbox.Moved{}) {
			t.Errorf("%s: got %+v, %v", code, moved, err)
		}
	}
	if moved, err := newRelay(t, box, db, cluster, outbox.RelayConfig{}).Pass(t.Context()); err != nil || moved.Submitted != 1 {
		t.Errorf("got %+v, %v", moved, err)
	}
}

// Run does not pause while batches are full, can be woken, and ends with its context.
func testRun(t *testing.T, d *database) {
	box, db := setUp(t, d)
	cluster := clienttest.New(t)
	r := newRelay(t, box, db, cluster, outbox.RelayConfig{Batch: 1, Interval: time.Hour})
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for n := range 3 {
		if err := order(t.Context(), box, db, n, false); err != nil {
			t.Fatal(err)
		}
	}
	r.Wake()
	awaitTasks(t, cluster, 3)
	stop(errors.New("enough"))
	if err := <-ended; err == nil || err.Error() != "enough" {
		t.Errorf("it ended with %v", err)
	}
}

// Run continues after a failed pass, and logs it.
func testRunAgain(t *testing.T, d *database) {
	box, db := setUp(t, d)
	cluster := clienttest.New(t)
	if err := order(t.Context(), box, db, 1, false); err != nil {
		t.Fatal(err)
	}
	mustExec(t.Context(), t, db, "ALTER TABLE claimq_outbox RENAME TO elsewhere")
	failed := make(chan struct{}, 100)
	r, err := box.NewRelay(db, cluster.Client(), outbox.RelayConfig{Interval: 10 * time.Millisecond, Logger: slog.New(telling{slog.DiscardHandler, failed})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	<-failed
	mustExec(t.Context(), t, db, "ALTER TABLE elsewhere RENAME TO claimq_outbox")
	awaitTasks(t, cluster, 1)
	stop()
	<-ended
}

// awaitTasks waits until n tasks are pending.
func awaitTasks(t *testing.T, cluster *clienttest.Server, n int) {
	t.Helper()
	testwait.Until(t, "the tasks", func() bool {
		pending, err := cluster.Client().List(t.Context(), client.StatusPending)
		return err == nil && len(pending) == n
	})
}

// telling is a handler that signals each record.
type telling struct {
	slog.Handler
	told chan<- struct{}
}

func (h telling) Enabled(context.Context, slog.Level) bool { return true }
func (h telling) Handle(context.Context, slog.Record) error {
	select {
	case h.told <- struct{}{}:
	default:
	}
	return nil
}
