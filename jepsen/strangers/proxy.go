package strangers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

// proxy is a proxy as its users configure it: it uses the nodes in turn, and ends waits
// after 30 s.
type proxy struct {
	name   string
	config string // %[1]s is the folder, %[2]s the nodes
	node   string // entry for a node in the config: %[1]d is its number, %[2]s its address
	args   []string
}

var haproxy = proxy{
	name: "haproxy",
	config: `defaults
	mode http
	option httpclose
	timeout connect 1s
	timeout client 30s
	timeout server 30s
frontend front
	bind unix@%[1]s/haproxy.sock
	default_backend nodes
backend nodes
	balance roundrobin
%[2]s`,
	node: "\tserver n%[1]d %[2]s\n",
	args: []string{"-db", "-f"},
}

// nginx speaks HTTP/1.0 to the nodes and closes each connection, which is its default.
var nginx = proxy{
	name: "nginx",
	config: `daemon off;
master_process off;
pid %[1]s/nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/nginx.body;
	proxy_temp_path %[1]s/nginx.proxy;
	fastcgi_temp_path %[1]s/nginx.fastcgi;
	uwsgi_temp_path %[1]s/nginx.uwsgi;
	scgi_temp_path %[1]s/nginx.scgi;
	client_max_body_size 16m;
	proxy_read_timeout 30s;
	upstream nodes {
%[2]s	}
	server {
		listen unix:%[1]s/nginx.sock;
		location / {
			proxy_pass http://nodes;
			proxy_set_header Host $http_host;
		}
	}
}
`,
	node: "\t\tserver %[2]s max_fails=0;\n",
	args: []string{"-e", "stderr", "-c"},
}

const (
	// proxyTimeout bounds the start of a proxy, and proxyPause is the pause between two
	// checks.
	proxyTimeout = 10 * time.Second
	proxyPause   = 10 * time.Millisecond
)

// through returns the socket of the proxy, and starts it unless it runs.
func (g *Ground) through(p proxy) (socket string, err error) {
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return "", err
	}
	socket = filepath.Join(dir, p.name+".sock")
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		return socket, err
	}
	var nodes strings.Builder
	for i, addr := range g.Nodes {
		fmt.Fprintf(&nodes, p.node, i+1, addr)
	}
	config := filepath.Join(dir, p.name+".conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, p.config, dir, nodes.String()), 0o600); err != nil {
		return "", err
	}
	log, err := os.Create(filepath.Join(dir, p.name+".log"))
	if err != nil {
		return "", err
	}
	g.opened = append(g.opened, log)
	cmd := exec.Command(p.name, append(p.args, config)...)
	if sbin := "/usr/sbin/" + p.name; cmd.Err != nil {
		cmd = exec.Command(sbin, cmd.Args[1:]...) // not in every user's path
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := g.start(cmd); err != nil {
		return "", err
	}
	return socket, pause.Within(context.Background(), proxyTimeout, func(ctx context.Context) error {
		return pause.Until(ctx, proxyPause, func() error { _, err := os.Stat(socket); return err })
	})
}
