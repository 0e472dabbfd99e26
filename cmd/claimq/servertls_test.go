package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// secured is a cluster of processes that use TLS on both ports and have no join key.
type secured struct {
	t     *testing.T
	nodes []*securedNode
	ca    *certstest.Authority // the clients' authority
	web   *http.Client         // has a certificate and trusts the nodes' certificates
	tls   *tls.Config          // used by web
}

type securedNode struct {
	id, url    string
	http, peer certstest.Paths
	args       []string
	log        *os.File
	cmd        *exec.Cmd
}

var localNames = []string{"127.0.0.1"}

// startSecured starts count nodes. a has signed the certificates of nodes and clients.
func startSecured(t *testing.T, count int, a *certstest.Authority, trusted ...*certstest.Authority) *secured {
	t.Helper()
	dir := t.TempDir()
	ports := claimqtest.TakePorts(t, 2*count)
	pool := a.Pool()
	for _, other := range trusted {
		pool.AppendCertsFromPEM(other.PEM())
	}
	c := &secured{t: t, ca: a, tls: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{a.Issue([]string{"worker"}).TLS(t)}}}
	c.web = &http.Client{Transport: &http.Transport{TLSClientConfig: c.tls.Clone(), DisableKeepAlives: true}, Timeout: claimqtest.Patience}
	var list []string
	for i := range count {
		list = append(list, fmt.Sprintf("n%d=127.0.0.1:%d", i+1, ports[2*i+1]))
	}
	for i := range count {
		n := &securedNode{id: fmt.Sprintf("n%d", i+1), url: fmt.Sprintf("https://127.0.0.1:%d", ports[2*i])}
		n.http = certstest.Write(t, mkdir(t, dir, n.id+"-http"), a.Issue(localNames), a)
		n.peer = certstest.Write(t, mkdir(t, dir, n.id+"-peer"), a.Issue([]string{"127.0.0.1", n.id}), a)
		n.args = []string{
			"server", "--node-id", n.id, "--data-dir", filepath.Join(dir, n.id), "--initial-cluster", strings.Join(list, ","),
			"--http-addr", strings.TrimPrefix(n.url, "https://"), "--peer-addr", fmt.Sprintf("127.0.0.1:%d", ports[2*i+1]),
			"--http-tls-cert-file", n.http.Cert, "--http-tls-key-file", n.http.Key, "--http-tls-client-ca-file", n.http.CA,
			"--peer-tls-cert-file", n.peer.Cert, "--peer-tls-key-file", n.peer.Key, "--peer-tls-ca-file", n.peer.CA,
		}
		var err error
		if n.log, err = os.Create(filepath.Join(dir, n.id+".log")); err != nil {
			t.Fatal(err)
		}
		n.start(t)
		c.nodes = append(c.nodes, n)
	}
	t.Cleanup(c.stop)
	for _, n := range c.nodes {
		c.eventually(n.id+" is ready", func() bool { return c.status(n, "/readyz") == http.StatusOK })
	}
	return c
}

func mkdir(t *testing.T, elements ...string) string {
	t.Helper()
	dir := filepath.Join(elements...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (n *securedNode) start(t *testing.T) {
	t.Helper()
	n.cmd = claimq(context.Background(), n.args...)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (n *securedNode) printed(t *testing.T) string {
	b, err := os.ReadFile(n.log.Name())
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func (c *secured) stop() {
	for _, n := range c.nodes {
		_ = n.cmd.Process.Signal(os.Interrupt)
	}
	for _, n := range c.nodes {
		if err := n.cmd.Wait(); err != nil || c.t.Failed() {
			c.t.Errorf("%s ended with %v; it printed:\n%s", n.id, err, n.printed(c.t))
		}
		_ = n.log.Close()
	}
}

func (c *secured) eventually(what string, holds func() bool) {
	c.t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for deadline := time.After(2 * claimqtest.Patience); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("waited too long until %s", what)
		}
	}
}

// get returns the node's answer, or "" if it did not answer.
func (c *secured) get(n *securedNode, path string) (body string, status int) {
	resp, err := c.web.Get(n.url + path)
	if err != nil {
		return "", 0
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b), resp.StatusCode
}

func (c *secured) status(n *securedNode, path string) int {
	_, status := c.get(n, path)
	return status
}

// leader returns the node that leads.
func (c *secured) leader() *securedNode {
	var leader *securedNode
	c.eventually("a node leads", func() bool {
		for _, n := range c.nodes {
			for _, m := range c.nodes {
				if body, status := c.get(m, "/metrics"); n == m && status == http.StatusOK && strings.Contains(body, "\nclaimq_raft_leader 1\n") {
					leader = n
				}
			}
		}
		return leader != nil
	})
	return leader
}

// reload puts files in place and makes the node read them.
func (c *secured) reload(n *securedNode, put func(), port, says string) {
	c.t.Helper()
	before := strings.Count(n.printed(c.t), says)
	put()
	if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		c.t.Fatal(err)
	}
	c.eventually(n.id+" says "+says+" for "+port, func() bool { return strings.Count(n.printed(c.t), says) > before })
}

// work submits, claims and completes through all nodes until stop is called. stop returns how many tasks were done. A
// failed call fails the test.
func (c *secured) work() (stop func() (done int64)) {
	c.t.Helper()
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, n.url)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	var done atomic.Int64
	for i := range 4 {
		cl, err := client.New(client.Config{Endpoints: append(urls[i%3:len(urls):len(urls)], urls[:i%3]...), TLS: c.tls, Timeout: claimqtest.Patience})
		if err != nil {
			c.t.Fatal(err)
		}
		working.Go(func() {
			defer cl.Close()
			for k := 0; ctx.Err() == nil; k++ {
				if err := oneTask(cl, fmt.Sprintf("w%d", i), fmt.Sprintf("%d-%d", i, k)); err != nil {
					c.t.Errorf("worker %d, task %d: %v", i, k, err)
					return
				}
				done.Add(1)
			}
		})
	}
	return func() int64 {
		cancel()
		working.Wait()
		return done.Load()
	}
}

// oneTask does one task from submit to complete.
func oneTask(cl *client.Client, worker, key string) error {
	ctx := context.Background()
	id, err := cl.Submit(ctx, client.Task{TaskType: "tls", Payload: []byte("1"), IdempotencyKey: key})
	if err == nil {
		err = cl.Claim(ctx, id, worker)
	}
	if err == nil {
		err = cl.Complete(ctx, id, []byte("2"))
	}
	return err
}

// Three nodes work while the leader is killed, and while all certificates are replaced by those of another authority,
// one node after another. No call fails.
func TestTLS_Cluster(t *testing.T) {
	t.Parallel()
	before, after := certstest.NewAuthority(t, "before"), certstest.NewAuthority(t, "after")
	c := startSecured(t, 3, before, after)
	stop := c.work()

	for _, step := range []func(n *securedNode){
		func(n *securedNode) { certstest.Put(t, n.peer.CA, append(bytes.Clone(before.PEM()), after.PEM()...)) },
		func(n *securedNode) { c.exchange(n.peer, after.Issue([]string{"127.0.0.1", n.id})) },
		func(n *securedNode) { certstest.Put(t, n.peer.CA, after.PEM()) },
	} {
		for _, n := range c.nodes {
			c.reload(n, func() { step(n) }, "peer", "new certificate: port=peer")
		}
	}
	for _, n := range c.nodes {
		c.reload(n, func() { c.exchange(n.http, after.Issue(localNames)) }, "http", "new certificate: port=http")
	}

	// Nodes that talk to a restarted node have new certificates.
	killed := c.leader()
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.cmd.Wait()
	if next := c.leader(); next == killed {
		t.Errorf("%s still leads", next.id)
	}
	killed.start(t)
	c.eventually(killed.id+" is back", func() bool { return c.status(killed, "/readyz") == http.StatusOK })
	if n := stop(); n < 10 {
		t.Errorf("only %d tasks were done", n)
	}
	for _, n := range c.nodes {
		if body, _ := c.get(n, "/api/cluster"); strings.Count(body, `"http_addr":"https://`) != 3 {
			t.Errorf("%s knows the nodes as %s", n.id, body)
		}
	}
	for port, p := range map[string]certstest.Paths{"http": c.nodes[0].http, "peer": c.nodes[0].peer} {
		want := fmt.Sprintf("claimq_tls_certificate_expiry_seconds{port=%q} %s\n", port, strconv.FormatFloat(float64(leaf(t, p.Cert).NotAfter.Unix()), 'g', -1, 64))
		if body, _ := c.get(c.nodes[0], "/metrics"); !strings.Contains(body, want) {
			t.Errorf("/metrics does not have %s", want)
		}
	}
}

// exchange replaces the key and then the certificate, as a careless tool would.
func (c *secured) exchange(p certstest.Paths, with certstest.Certificate) {
	certstest.Put(c.t, p.Key, with.KeyPEM)
	certstest.Put(c.t, p.Cert, with.CertPEM)
}

func leaf(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Invalid files change nothing, and the log says why.
func TestTLS_BadFiles(t *testing.T) {
	t.Parallel()
	a, other := certstest.NewAuthority(t, "a"), certstest.NewAuthority(t, "other")
	c := startSecured(t, 1, a)
	n := c.nodes[0]
	good := a.Issue(localNames)
	bad := "the new certificate files are of no use"
	for says, with := range map[string]certstest.Certificate{
		"swapped?":                         {CertPEM: good.KeyPEM, KeyPEM: good.CertPEM},
		"does not match":                   {CertPEM: good.CertPEM, KeyPEM: a.Issue(localNames).KeyPEM},
		`certificate of 127.0.0.1 expired`: a.Issue(localNames, certstest.Expired),
	} {
		c.reload(n, func() { certstest.Write(t, filepath.Dir(n.http.Cert), with, a) }, "http", bad)
		if !strings.Contains(n.printed(t), says) {
			t.Errorf("it does not say %s", says)
		}
		if status := c.status(n, "/healthz"); status != http.StatusOK {
			t.Errorf("after that it answers %d", status)
		}
	}
	c.reload(n, func() { c.exchange(n.peer, other.Issue([]string{"n1"})) }, "peer", bad)
	c.reload(n, func() { c.exchange(n.http, good) }, "http", "new certificate: port=http")
}

// Neither a node nor a client command starts with invalid files.
func TestTLS_Usage(t *testing.T) {
	t.Parallel()
	a := certstest.NewAuthority(t, "a")
	p := certstest.Write(t, t.TempDir(), a.Issue(localNames), a)
	server := []string{"server", "--node-id", "n1", "--data-dir", t.TempDir(), "--http-addr", "127.0.0.1:0", "--peer-addr", "127.0.0.1:0"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{append(server, "--http-tls-cert-file", p.Key, "--http-tls-key-file", p.Cert), "http_tls: invalid certificate files: " + p.Key + " has a private key and no certificate"},
		{append(server, "--peer-tls-cert-file", p.Cert, "--peer-tls-key-file", p.Key, "--peer-tls-ca-file", p.Key), "peer_tls: "},
		{[]string{"stats", "--cert-file", p.Cert}, "--cert-file and --key-file go together"},
		{[]string{"stats", "--cert-file", p.Key, "--key-file", p.Cert}, "are the files of certificate and key swapped?"},
		{[]string{"stats", "--ca-file", p.Key}, "has a PRIVATE KEY among the certificates"},
		{[]string{"stats", "--ca-file", p.Key + ".none"}, "no such file"},
	} {
		var stderr bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr}
		if code := run(t.Context(), a, tc.args); code != term.ExitUsage || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%v: %d, %s, want %s", tc.args, code, stderr.String(), tc.want)
		}
	}
}

// Client commands talk TLS to nodes, and say what is missing.
func TestTLS_Commands(t *testing.T) {
	t.Parallel()
	a, other := certstest.NewAuthority(t, "a"), certstest.NewAuthority(t, "other")
	c := startSecured(t, 1, a)
	url := c.nodes[0].url
	own := certstest.Write(t, t.TempDir(), a.Issue([]string{"worker"}), a)
	stranger := certstest.Write(t, t.TempDir(), other.Issue([]string{"worker"}), other)
	for name, tc := range map[string]struct {
		args []string
		env  []string
		code int
		want string
	}{
		"by flags":       {[]string{"--endpoint", url, "--ca-file", own.CA, "--cert-file", own.Cert, "--key-file", own.Key}, nil, term.ExitDone, ""},
		"by variables":   {nil, []string{"CLAIMQ_ENDPOINTS=" + url, "CLAIMQ_CA_FILE=" + own.CA, "CLAIMQ_CERT_FILE=" + own.Cert, "CLAIMQ_KEY_FILE=" + own.Key}, term.ExitDone, ""},
		"no authority":   {[]string{"--endpoint", url}, nil, term.ExitUnknown, "signed by unknown authority"},
		"another's":      {[]string{"--endpoint", url, "--ca-file", stranger.CA}, nil, term.ExitUnknown, "--ca-file names the authority"},
		"another name":   {[]string{"--endpoint", strings.Replace(url, "127.0.0.1", "localhost", 1), "--ca-file", own.CA}, nil, term.ExitUnknown, "localhost"},
		"no certificate": {[]string{"--endpoint", url, "--ca-file", own.CA}, nil, term.ExitUnknown, "certificate required"},
		"a stranger's":   {[]string{"--endpoint", url, "--ca-file", own.CA, "--cert-file", stranger.Cert, "--key-file", stranger.Key}, nil, term.ExitUnknown, "--cert-file and --key-file this client's own"},
		"plain HTTP":     {[]string{"--endpoint", strings.Replace(url, "https", "http", 1)}, nil, term.ExitRefused, "This port speaks HTTPS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var code int
			var said string
			for _, timeout := range []string{"1s", "15s"} { // a handshake may take more than 1s on a busy machine
				var stderr bytes.Buffer
				a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr, Environ: tc.env}
				code = run(t.Context(), a, append([]string{"stats", "--timeout", timeout}, tc.args...))
				if said = stderr.String(); strings.Contains(said, tc.want) {
					break
				}
			}
			if code != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("exit code %d, want %d; it says %s, want %q", code, tc.code, said, tc.want)
			}
		})
	}
}
