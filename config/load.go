package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// joinKeyBytesMin is the shortest join key: 32 characters of hex are 128 bits.
const joinKeyBytesMin = 32

// AddServerFlags defines a flag for each setting of Server, with the defaults
// of DefaultServer.
func AddServerFlags(fs *pflag.FlagSet) {
	d := DefaultServer()
	fs.String("node-id", d.NodeID, "name of this node; never changes for a data folder")
	fs.String("data-dir", d.DataDir, "folder for the node's data")
	fs.String("http-addr", d.HTTPAddr, "host:port that the API listens on")
	fs.String("peer-addr", d.PeerAddr, "host:port for the other nodes")
	fs.String("http-advertise", d.HTTPAdvertise, "host:port of the API that others are told (default: --http-addr)")
	fs.String("peer-advertise", d.PeerAdvertise, "host:port that other nodes dial (default: --peer-addr)")
	fs.Bool("bootstrap", d.Bootstrap, "be the first node of a new cluster")
	fs.StringSlice("join", d.Join, "peer addresses of a running cluster to join")
	fs.StringSlice("initial-cluster", d.InitialCluster, "all nodes of a new cluster, as n1=HOST:PEERPORT,n2=...; the same list on all")
	fs.String("join-key-file", d.JoinKeyFile, "file with the secret that lets nodes meet: one line, at least 32 characters")
	fs.Bool("insecure", d.Insecure, "allow listening beyond loopback without authentication")
	fs.Int64("memory-limit", d.MemoryLimit, "bytes that tasks may hold before submits are refused (default: half of the memory)")
	fs.Int64("snapshot-log-bytes", d.SnapshotLogBytes, "bytes of log that make a snapshot due")
	fs.String("log-store", d.LogStore, "how a new data folder keeps its log: wal or boltdb (default: what the folder has)")
	fs.String("audit-file", d.AuditFile, "file to write every event of the trail to, a line of JSON each; SIGHUP opens it anew")
	fs.Int64("trail-bytes", d.TrailBytes, "bytes of events that the cluster keeps (default: what it has, at first 64 MiB)")
	fs.Duration("trail-age", d.TrailAge, "how long the cluster keeps events (default: what it has, at first 24h)")
	fs.String("log-level", d.LogLevel, "trace, debug, info, warn or error")
	fs.Bool("no-raft", d.NoRaft, "serve from memory alone: for comparisons, never for data")
	_ = fs.MarkHidden("no-raft")
}

// LoadServer merges the YAML file at path ("" = none), the environment and the
// flags that were set, and validates the result. environ has elements of the
// form KEY=value, as os.Environ returns them; variables that name no setting
// of a server are left alone, for clients have some of their own. An unknown
// key in the file is an error.
func LoadServer(path string, environ []string, fs *pflag.FlagSet) (Server, error) {
	k := koanf.New(".")
	known := settings(fs)
	if path != "" {
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return Server{}, fmt.Errorf("read config file %s: %w", path, err)
		}
		for _, key := range k.Keys() {
			if !slices.Contains(known, key) {
				return Server{}, fmt.Errorf("config file %s: unknown setting %q; the settings are %s", path, key, strings.Join(known, ", "))
			}
		}
	}
	vars := env.Provider(".", env.Opt{
		Prefix:      "CLAIMQ_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "CLAIMQ_")), "__", ".")
			if !slices.Contains(known, key) {
				return "", nil
			}
			return key, value
		},
	})
	if err := k.Load(vars, nil); err != nil {
		return Server{}, fmt.Errorf("read environment: %w", err)
	}
	flags := posflag.ProviderWithFlag(fs, ".", k, func(f *pflag.Flag) (string, any) {
		key := settingName(f)
		if !slices.Contains(known, key) {
			return "", nil
		}
		return key, posflag.FlagVal(fs, f)
	})
	if err := k.Load(flags, nil); err != nil {
		return Server{}, fmt.Errorf("read flags: %w", err)
	}
	var s Server
	err := k.UnmarshalWithConf("", &s, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result:           &s,
		TagName:          "koanf",
		WeaklyTypedInput: true, // variables are strings
		ErrorUnused:      true,
		DecodeHook:       mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(",")),
	}})
	if err != nil {
		return Server{}, fmt.Errorf("read configuration: %w", err)
	}
	if err := s.Validate(); err != nil {
		return Server{}, err
	}
	return s, nil
}

// settings returns the settings that fs has flags for, sorted.
func settings(fs *pflag.FlagSet) []string {
	server := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddServerFlags(server)
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if server.Lookup(f.Name) != nil {
			names = append(names, settingName(f))
		}
	})
	slices.Sort(names)
	return names
}

func settingName(f *pflag.Flag) string { return strings.ReplaceAll(f.Name, "-", "_") }

// ReadJoinKey returns the secret in the file at path without the white space
// around it, nil if path is empty.
func ReadJoinKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read join key: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if len(key) < joinKeyBytesMin || strings.ContainsAny(key, "\r\n") {
		return nil, fmt.Errorf("join key file %s: it must hold one line of at least %d characters", path, joinKeyBytesMin)
	}
	return []byte(key), nil
}
