package config

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SQS configures the endpoint for clients of Amazon SQS, on the API's port.
type SQS struct {
	Enabled bool
	// URL is the beginning of the URLs of queues, as https://HOST:PORT. Empty: the address that the client has used.
	URL string
	// Account is in the URLs and names of queues, Region in their names. Region empty: the client's.
	Account, Region string
	// CredentialsFile is a YAML file with the credentials that sign requests. SIGHUP reads it again.
	CredentialsFile string
	// Credentials is the file's content, which LoadServer reads.
	Credentials []Credential
}

// Credential is the secret by which a client signs requests, in place of an API key. KeySHA256 is empty.
type Credential struct {
	Key
	AccessKeyID string
	Secret      string // the client signs with it, and the server checks with it, so it is kept as it is, not hashed
}

// credentialsName is the one setting of a credentials file.
const credentialsName = "credentials"

var credentialFields = [...]string{"access_key_id", "secret", "name", "role", "roles", "task_types", "rate_limit_per_minute", "addresses"}

var (
	accountPattern     = regexp.MustCompile(`^[0-9]{12}$`)
	regionPattern      = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	accessKeyIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,128}$`)
	secretPattern      = regexp.MustCompile(`^[!-~]{16,256}$`)
)

// readCredentials reads the credentials of the file at path, which only its owner and group may read.
func (l *loader) readCredentials(path string) {
	info, err := os.Stat(path)
	if err != nil {
		l.mistake("read sqs.credentials_file: %w", err)
		return
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		l.mistake("sqs.credentials_file %s has mode %04o: others must have no access, as with chmod 640", path, mode)
		return
	}
	root, err := readYAML(path)
	if err != nil {
		l.mistake("read sqs.credentials_file: %w", err)
		return
	}
	f := fileReader{loader: l, path: path}
	if root == nil {
		l.mistake("%s: it has no credentials: a file without them must say so as credentials: []", path)
		return
	}
	f.entries(root, func(key, value *yaml.Node) {
		switch {
		case key.Value != credentialsName:
			f.mistake("%s: %s; a credentials_file has only credentials", f.at(key), unknown("setting", key.Value, []string{credentialsName}))
		case value.Kind != yaml.SequenceNode:
			f.mistake("%s: credentials must be a list of mappings with access_key_id, secret, name and roles", f.at(value))
		case len(value.Content) > keysMax:
			f.mistake("%s: there are over %d credentials", f.at(value), keysMax)
		default:
			for _, e := range value.Content {
				f.credential(resolve(e))
			}
		}
	})
}

func (f *fileReader) credential(m *yaml.Node) {
	if m.Kind != yaml.MappingNode {
		f.mistake("%s: a credential must be a mapping with access_key_id, secret, name and roles", f.at(m))
		return
	}
	var c Credential
	f.entries(m, func(field, value *yaml.Node) {
		single := value.Kind == yaml.ScalarNode
		switch name := field.Value; {
		case isNull(value):
			// As if it were absent.
		case name == "name" && single:
			c.Name = value.Value
		case name == "access_key_id" && single:
			c.AccessKeyID = value.Value
		case name == "secret" && single:
			c.Secret = value.Value
		case f.grant(&c.Key, name, value):
		default:
			f.mistake("%s: %s", f.at(field), unknown("field of a credential", name, credentialFields[:]))
		}
	})
	f.loaded.SQS.Credentials = append(f.loaded.SQS.Credentials, c)
}

// validateSQS records mistakes in the settings of the endpoint, never with a secret.
func (s *Server) validateSQS(add func(string, ...any)) {
	q := &s.SQS
	if !accountPattern.MatchString(q.Account) {
		add("sqs.account is %q: it must be 12 digits", q.Account)
	}
	if q.Region != "" && !regionPattern.MatchString(q.Region) {
		add("sqs.region is %q: it must be 1 to 32 of a-z 0-9 -", q.Region)
	}
	if u, err := url.Parse(q.URL); q.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(q.URL, "/")) {
		add("sqs.url is %q: it must be http:// or https://, a host and a port, without / at its end", q.URL)
	}
	if !q.Enabled && (q.CredentialsFile != "" || q.URL != "") {
		add("sqs.credentials_file and sqs.url go with sqs.enabled")
	}
	names, ids := make(map[string]bool, len(q.Credentials)), make(map[string]bool, len(q.Credentials))
	for i := range s.Keys {
		names[s.Keys[i].Name] = true
	}
	for i := range q.Credentials {
		c := &q.Credentials[i]
		which := fmt.Sprintf("credentials: credential %d (%q)", i+1, c.Name)
		if !nodeIDPattern.MatchString(c.Name) {
			add("%s: its name must be 1 to 64 of A-Z a-z 0-9 _ . -", which)
		} else if names[c.Name] {
			add("%s: its name is that of another credential or key", which)
		}
		if !accessKeyIDPattern.MatchString(c.AccessKeyID) {
			add("%s: its access_key_id must be 3 to 128 of A-Z a-z 0-9 _ . -", which)
		} else if ids[c.AccessKeyID] {
			add("%s: its access_key_id is there twice", which)
		}
		names[c.Name], ids[c.AccessKeyID] = true, true
		if !secretPattern.MatchString(c.Secret) {
			add("%s: its secret must be 16 to 256 printable characters of ASCII without spaces (it is not shown)", which)
		}
		c.validateGrant(add, which)
	}
}

// sqsSettings are the settings of the endpoint.
func sqsSettings() []setting {
	return []setting{
		{name: "sqs.enabled", usage: "answer clients of Amazon SQS on the API's port", value: func(s *Server) value { return &toggle{&s.SQS.Enabled} }},
		{name: "sqs.credentials_file", usage: "YAML file with the credentials by which clients of SQS sign; SIGHUP reloads it", value: func(s *Server) value { return &text{p: &s.SQS.CredentialsFile} }},
		{name: "sqs.url", usage: "beginning of the URLs of queues, as https://HOST:PORT (default: the address that the client has used)", value: func(s *Server) value { return &text{p: &s.SQS.URL} }},
		{name: "sqs.account", usage: "account in the URLs of queues, 12 digits", value: func(s *Server) value { return &text{p: &s.SQS.Account} }},
		{name: "sqs.region", usage: "region in the names (ARN) of queues (default: the client's)", value: func(s *Server) value { return &text{p: &s.SQS.Region} }},
	}
}
