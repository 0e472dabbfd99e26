package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

var nodeIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Validate returns every mistake in s, each naming the setting and its valid values.
func (s *Server) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if !nodeIDPattern.MatchString(s.NodeID) {
		add("node_id is %q: it must be 1 to 64 of A-Z a-z 0-9 _ . - (--node-id n1)", s.NodeID)
	}
	if s.DataDir == "" && !s.NoRaft {
		add("data_dir is not set: name the folder for the node's data (--data-dir DIR)")
	}
	for _, d := range settings() {
		if v := d.value(s); !v.ok() {
			add("%s is %s: it must be %s", d.name, shown(v), v.allowed())
		}
	}
	s.validateAddresses(add)
	s.validateStart(add)
	s.validateTLS(add)
	s.validateKeys(add)
	s.validateOIDC(add)
	s.validateSQS(add)
	s.Backup.validate(add)
	for _, origin := range s.AllowedOrigins {
		if !isOrigin(origin) {
			add("allowed_origins has %q: each must be https://HOST or https://HOST:PORT (or http://), without a path", origin)
		}
	}
	return errors.Join(errs...)
}

// shown formats v for a mistake.
func shown(v value) string {
	if _, ok := v.(*text); ok {
		return fmt.Sprintf("%q", v.String())
	}
	return v.String()
}

func (s *Server) validateAddresses(add func(string, ...any)) {
	for _, a := range []struct {
		name, value string
		optional    bool
		dialed      bool   // by others, not listened on
		guarded     bool   // may listen beyond loopback
		guards      string // what would permit that
	}{
		{"http_addr", s.HTTPAddr, false, false, s.Insecure || s.Asks(), "without API keys a node serves on loopback only: set keys, keys_file or oidc; --insecure serves everybody, on a network that you trust"},
		{"peer_addr", s.PeerAddr, false, false, s.Insecure || s.meets(), "without a secret a node meets others on loopback only: set join_key_file, or peer_tls; --insecure meets everybody, on a network that you trust"},
		{"health_addr", s.HealthAddr, true, false, true, ""},
		{"http_advertise", s.HTTPAdvertise, true, true, true, ""},
		{"peer_advertise", s.PeerAdvertise, true, true, true, ""},
	} {
		if a.value == "" && a.optional {
			continue
		}
		host, _, err := net.SplitHostPort(a.value)
		if err != nil || !validPort(a.value, a.dialed) {
			add("%s is %q: it must be host:port, with a port from 1 to 65535", a.name, a.value)
			continue
		}
		if !a.guarded && !IsLoopback(host) {
			add("%s is %q: %s", a.name, a.value, a.guards)
		}
	}
	for _, a := range []struct{ name, listen, advertise string }{
		{"http", s.HTTPAddr, s.HTTPAdvertise},
		{"peer", s.PeerAddr, s.PeerAdvertise},
	} {
		host, _, err := net.SplitHostPort(a.listen)
		if err == nil && a.advertise == "" && (host == "" || net.ParseIP(host).IsUnspecified()) {
			add("%s_addr is %q, which others cannot dial: set %s_advertise to the address that they reach this node on", a.name, a.listen, a.name)
		}
	}
	listens := []struct{ name, value string }{{"http_addr", s.HTTPAddr}, {"peer_addr", s.PeerAddr}, {"health_addr", s.HealthAddr}}
	for i, b := range listens {
		for _, a := range listens[:i] {
			if a.value == b.value && !strings.HasSuffix(a.value, ":0") {
				add("%s and %s are both %q: give each a port of its own", a.name, b.name, a.value)
			}
		}
	}
}

// validPort reports whether addr has a port: a number up to 65535 or the name of a service. Port 0 stands for any free
// one, which others could not dial.
func validPort(addr string, dialed bool) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return false
	}
	n, err := net.LookupPort("tcp", port)
	return err == nil && (n > 0 || !dialed)
}

// Asks reports whether clients need a key or a token.
func (s *Server) Asks() bool {
	return len(s.Keys) > 0 || len(s.SQS.Credentials) > 0 || s.OIDC.Issuer != ""
}

// meets reports whether there is a secret by which nodes recognize each other.
func (s *Server) meets() bool { return s.JoinKeyFile != "" || s.PeerTLS.required() }

func (s *Server) validateStart(add func(string, ...any)) {
	ways := 0
	for _, set := range []bool{s.Bootstrap, len(s.Join) > 0, len(s.InitialCluster) > 0} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		add("bootstrap, join and initial_cluster: give only one of them")
	}
	if s.NoRaft && s.Backup.Every > 0 {
		add("no_raft does not go with backup.every: a node without a cluster's id takes no regular backups")
	}
	if s.NoRaft && ways > 0 {
		add("no_raft goes with none of bootstrap, join and initial_cluster: it is one node without a log")
	}
	if (len(s.Join) > 0 || len(s.InitialCluster) > 1) && !s.meets() && !s.Insecure {
		add("join_key_file is not set: several nodes need a shared secret to meet (--join-key-file FILE, a line of at least 32 characters, the same on all), or peer_tls")
	}
	for _, addr := range s.Join {
		if !validPort(addr, true) {
			add("join has %q: each element must be HOST:PEERPORT, with a port from 1 to 65535", addr)
		}
	}
	if _, err := s.InitialClusterMap(); err != nil {
		add("%w", err)
	}
}

func (s *Server) validateTLS(add func(string, ...any)) {
	if h := s.HTTPTLS; (h.CertFile == "") != (h.KeyFile == "") {
		add("http_tls has cert_file %q and key_file %q: set both or none", h.CertFile, h.KeyFile)
	} else if h.ClientCAFile != "" && h.CertFile == "" {
		add("http_tls.client_ca_file is %q: it goes with cert_file and key_file", h.ClientCAFile)
	}
	if p := s.PeerTLS; !p.none() && (p.CertFile == "" || p.KeyFile == "" || p.CAFile == "") {
		add("peer_tls has cert_file %q, key_file %q and ca_file %q: set all three or none", p.CertFile, p.KeyFile, p.CAFile)
	} else if p.none() && (p.Mode == peerTLSPrefer || p.Mode == peerTLSAccept) {
		add("peer_tls.mode is %q: it goes with cert_file, key_file and ca_file", p.Mode)
	}
}

// isOrigin reports whether s is an origin as browsers send it.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Hostname() == "" || strings.Contains(u.Host, "*") {
		return false
	}
	return (u.Scheme == "https" || u.Scheme == "http") && s == u.Scheme+"://"+strings.ToLower(u.Host)
}

// warn records valid settings that are probably mistakes.
func (l *loader) warn() {
	s := &l.loaded.Server
	host, _, _ := net.SplitHostPort(s.HTTPAddr)
	if beyond := !IsLoopback(host); beyond && s.Asks() && s.HTTPTLS.CertFile == "" {
		l.loaded.Warnings = append(l.loaded.Warnings, "API keys and tokens travel in the clear: http_addr is beyond loopback and http_tls is not set")
	}
	if s.OIDC.Issuer != "" && len(s.OIDC.Roles) == 0 {
		l.loaded.Warnings = append(l.loaded.Warnings, "no token may do anything: oidc.issuer is set and oidc.roles has none")
	}
	host, _, _ = net.SplitHostPort(s.PeerAddr)
	switch beyond := !IsLoopback(host); {
	case beyond && s.PeerTLS.none():
		l.loaded.Warnings = append(l.loaded.Warnings, "nodes talk in the clear: peer_addr is beyond loopback and peer_tls is not set")
	case !s.PeerTLS.none() && !s.PeerTLS.required():
		l.loaded.Warnings = append(l.loaded.Warnings, fmt.Sprintf("nodes may talk in the clear: peer_tls.mode is %s, which is there to switch TLS on or off", s.PeerTLS.Mode))
	}
}

// InitialClusterMap returns InitialCluster as peer addresses by node id, or nil if it is empty. It returns an error
// for a malformed or repeated element, or if this node is missing.
func (s *Server) InitialClusterMap() (map[string]string, error) {
	if len(s.InitialCluster) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(s.InitialCluster))
	for _, e := range s.InitialCluster {
		id, addr, _ := strings.Cut(e, "=")
		if !validPort(addr, true) || !nodeIDPattern.MatchString(id) {
			return nil, fmt.Errorf("initial_cluster has %q: each element must be NODE_ID=HOST:PEERPORT, with a port from 1 to 65535", e)
		}
		if _, ok := m[id]; ok {
			return nil, fmt.Errorf("initial_cluster names %q twice", id)
		}
		m[id] = addr
	}
	if _, ok := m[s.NodeID]; !ok {
		return nil, fmt.Errorf("initial_cluster does not name this node, %q", s.NodeID)
	}
	return m, nil
}

// IsLoopback reports whether host is a name or address of only this machine.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
