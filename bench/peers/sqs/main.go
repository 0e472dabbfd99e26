// Command sqs measures the endpoint for clients of Amazon SQS:
//
//	make bench-sqs
//
// Three nodes of claimq are driven by aws-sdk-go-v2, with signatures that are checked, and by their own HTTP API, in
// batches of ten; and they and GoAws, if it is installed, which is one process that syncs nothing, are driven by one
// load by the Query protocol. Each of --workers goroutines sends ten messages of 256 bytes, receives up to ten and
// deletes them, again and again, for --time. The order changes with each round, and no two are measured together. It
// prints the medians of the messages that were deleted in a second, of the CPU time that the servers and the load took for
// each, and of each round's ratio.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := comparison{warmUp: time.Second}
	flag.StringVar(&c.binary, "binary", "../../bin/claimq", "claimq")
	flag.StringVar(&c.goaws, "goaws", "goaws", "GoAws; \"\": without it")
	flag.StringVar(&c.dir, "dir", ".", "folder whose file system claimq writes to")
	flag.IntVar(&c.rounds, "rounds", 5, "how often each is measured")
	flag.IntVar(&c.workers, "workers", 64, "goroutines")
	flag.DurationVar(&c.time, "time", 5*time.Second, "how long each is measured")
	flag.Parse()
	if c.rounds < 1 || c.workers < 1 || c.time <= 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "sqs: --rounds, --workers and --time must be above 0, and there are no arguments")
		os.Exit(2)
	}
	if err := c.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sqs:", err)
		os.Exit(1)
	}
}

// comparison holds the settings of a run.
type comparison struct {
	binary, goaws, dir string
	rounds, workers    int
	warmUp, time       time.Duration
}

// run measures and prints what it finds.
func (c *comparison) run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(c.dir, "sqs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	cluster, err := startClaimq(ctx, c.binary, dir)
	if err != nil {
		return err
	}
	defer cluster.Close()
	leader, err := cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	pairs := [][2]system{{newSDK(leader.URL(), c.workers), newNative(leader.URL(), c.workers)}}
	if path, missing := exec.LookPath(c.goaws); missing != nil {
		fmt.Fprintf(out, "GoAws is not there (%v): go install github.com/Admiral-Piett/goaws/app/cmd@v0.4.5, and name the program by --goaws\n", missing)
	} else {
		url, pid, end, err := startGoAws(ctx, path, dir)
		if err != nil {
			return err
		}
		defer end()
		other := newQuery("GoAws by Query", url, c.workers)
		other.servers = []int{pid}
		pairs = append(pairs, [2]system{newQuery("claimq by Query", leader.URL(), c.workers), other})
	}
	for i := range pairs {
		for k := range pairs[i] {
			if s := &pairs[i][k]; s.servers == nil {
				for _, node := range cluster.Nodes {
					s.servers = append(s.servers, node.PID())
				}
			}
		}
	}
	for _, p := range pairs {
		if err := c.compare(ctx, out, p); err != nil {
			return err
		}
	}
	return nil
}

// compare measures both in turns.
func (c *comparison) compare(ctx context.Context, out io.Writer, pair [2]system) error {
	var figures [2][]figure
	var ratios []float64
	for round := range c.rounds {
		for i := range pair {
			which := (i + round) % 2
			f, err := c.measure(ctx, pair[which])
			if err != nil {
				return fmt.Errorf("%s: %w", pair[which].name, err)
			}
			figures[which] = append(figures[which], f)
		}
		ratios = append(ratios, figures[0][round].rate/figures[1][round].rate)
	}
	for i := range pair {
		fmt.Fprintf(out, "%s: %.0f messages/s, of CPU %.0f µs for each, and the load %.0f; ", pair[i].name,
			medianOf(figures[i], func(f figure) float64 { return f.rate }), medianOf(figures[i], func(f figure) float64 { return micros(f.servers) }),
			medianOf(figures[i], func(f figure) float64 { return micros(f.load) }))
	}
	fmt.Fprintf(out, "ratio %.2f (%.2f to %.2f)\n", median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func medianOf(figures []figure, of func(f figure) float64) float64 {
	all := make([]float64, len(figures))
	for i := range figures {
		all[i] = of(figures[i])
	}
	return median(all)
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// startClaimq starts three nodes that check signatures.
func startClaimq(ctx context.Context, binary, dir string) (*procs.Cluster, error) {
	keysFile, credentials := filepath.Join(dir, "keys.yaml"), filepath.Join(dir, "sqs.yaml")
	keys, err := procs.WriteKeys(keysFile, map[string]string{"bench": "roles: [producer, worker, operator]"})
	if err != nil {
		return nil, err
	}
	nativeKey = keys["bench"]
	text := "credentials:\n  - {name: sqs, access_key_id: " + accessKeyID + ", secret: " + secret + ", roles: [producer, worker, operator]}\n"
	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	return procs.Start(ctx, procs.Config{Binary: binary, Dir: dir, Nodes: 3, APIKey: nativeKey, Flags: []string{
		"--log-level", "warn", "--keys-file", keysFile, "--sqs-enabled", "--sqs-credentials-file", credentials,
	}})
}

// startGoAws starts GoAws, and returns its URL once it answers.
func startGoAws(ctx context.Context, path, dir string) (url string, pid int, end func(), err error) {
	ports, release, err := procs.TakePorts(1)
	if err != nil {
		return "", 0, nil, err
	}
	port := strconv.Itoa(ports[0])
	config := filepath.Join(dir, "goaws.yaml")
	text := "Local:\n  Host: 127.0.0.1\n  Port: " + port + "\n  Region: eu\n  AccountId: \"000000000000\"\n  QueueAttributeDefaults:\n    VisibilityTimeout: 30\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		release()
		return "", 0, nil, err
	}
	cmd := exec.Command(path, "-config", config, "Local")
	cmd.SysProcAttr = procs.ChildAttr()
	if err := cmd.Start(); err != nil {
		release()
		return "", 0, nil, err
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		release()
	}
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	url = "http://127.0.0.1:" + port
	if err := pause.Until(starting, 50*time.Millisecond, func() error { return newQuery("", url, 1).prepare(starting) }); err != nil {
		end()
		return "", 0, nil, fmt.Errorf("GoAws does not answer: %w", err)
	}
	return url, cmd.Process.Pid, end, nil
}
