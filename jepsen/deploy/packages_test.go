package deploy

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// packages checks the files that users install against the binary.
type packages struct{ binary string }

// Each way of installing starts a working server.
func TestPackages(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := packages{binary}
	t.Run("systemd", p.systemd)
	t.Run("dockerfile", p.dockerfile)
	t.Run("compose", p.compose)
	t.Run("compose's secrets", p.composeSecrets)
	t.Run("chart", p.chart)
}

// checkSettings lets claimq check the settings with which a package starts it.
func (p packages) checkSettings(t *testing.T, environ []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.binary, append([]string{"config", "show"}, args...)...)
	cmd.Env = environ
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("claimq config show %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// checkHealth checks that claimq accepts the command of a package's health check. It does not
// matter whether something listens.
func (p packages) checkHealth(t *testing.T, environ, command []string) {
	t.Helper()
	if len(command) < 2 || command[0] != "/usr/bin/claimq" || command[1] != "health" {
		t.Fatalf("the health is asked by %q", command)
	}
	cmd := exec.CommandContext(t.Context(), p.binary, command[1:]...)
	cmd.Env = environ
	if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		t.Errorf("%q: %v\n%s", command, err, out)
	}
}

// noKeys returns a keys_file for settings that name a missing one.
func noKeys(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	key := "keys: [{name: a, role: reader, key_sha256: " + strings.Repeat("0a", 32) + "}]\n"
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// systemd accepts the unit, which is little exposed, and the server that it starts accepts the
// example of a configuration.
func (p packages) systemd(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Fatal("systemd-analyze is missing: .ci/tools installs it")
	}
	unit := read(t, "systemd/claimq.service")
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/claimq server --config (\S+)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("the unit does not start claimq server with a file")
	}
	if !strings.Contains(read(t, "systemd/claimq.yaml"), "# "+start[1]) {
		t.Errorf("the example of a configuration is not for %s", start[1])
	}
	p.checkSettings(t, nil, "--config", "systemd/claimq.yaml")
	if !strings.Contains(unit, "\nLimitCORE=0\n") {
		t.Error("the server may dump its memory")
	}

	p.verifyUnit(t, "claimq.service", unit)
	p.analyze(t, "security", "--offline=true", "--threshold=15", p.unitFile(t, "claimq.service", unit))
	p.workUnit(t)
}

// workUnit checks the unit of workers: systemd signals the worker first, and then waits for longer
// than the worker lets its commands finish.
func (p packages) workUnit(t *testing.T) {
	unit := read(t, "systemd/claimq-work@.service")
	for _, line := range []string{"KillMode=mixed", "TimeoutStopSec=45", "ExecStart=/usr/bin/claimq work --type %i $WORK_FLAGS -- $WORK_COMMAND"} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the worker's unit does not say %s", line)
		}
	}
	p.verifyUnit(t, "claimq-work@mail.service", unit)
}

// verifyUnit lets systemd verify the unit.
func (p packages) verifyUnit(t *testing.T, name, unit string) {
	t.Helper()
	path := p.unitFile(t, name, unit)
	// verify only warns about things that it does not know, and goes on.
	if out := p.analyze(t, "verify", "--man=no", path); strings.Contains(out, path) {
		t.Errorf("systemd-analyze says of %s:\n%s", name, out)
	}
}

// unitFile writes a unit that starts the binary under test, and returns its path.
func (p packages) unitFile(t *testing.T, name, unit string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(unit, "/usr/bin/claimq", p.binary)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p packages) analyze(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// readDockerfile returns the lines of a Dockerfile, with continued lines joined.
func readDockerfile(t *testing.T) []string {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read(t, "../Dockerfile"), "")
	return strings.Split(strings.TrimSpace(regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")), "\n")
}

// The files of the image exist, it runs without privileges, and its entry point is a command of
// the binary.
func (p packages) dockerfile(t *testing.T) {
	known := regexp.MustCompile(`^(FROM|WORKDIR|COPY|RUN|ARG|LABEL|USER|ENV|VOLUME|EXPOSE|STOPSIGNAL|HEALTHCHECK|ENTRYPOINT|CMD) `)
	stage, user := "", ""
	for _, line := range readDockerfile(t) {
		if line == "" {
			continue
		}
		if !known.MatchString(line) {
			t.Errorf("unknown instruction: %s", line)
		}
		instruction, rest, _ := strings.Cut(line, " ")
		switch instruction {
		case "FROM":
			stage = rest
		case "USER":
			user = rest
		case "COPY":
			fields := strings.Fields(rest)
			for _, source := range fields[:len(fields)-1] {
				if strings.HasPrefix(fields[0], "--from=") || strings.HasPrefix(source, "--") {
					continue
				}
				if _, err := os.Stat(filepath.Join("..", source)); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	}
	if stage != "scratch" || user != "65532:65532" {
		t.Errorf("the image is from %q and runs as %q", stage, user)
	}
	text := strings.Join(readDockerfile(t), "\n")
	gone := strings.NewReplacer("\n", " ").Replace(text)
	if version := regexp.MustCompile(`FROM golang:(\d+\.\d+)\.\d+@sha256:[0-9a-f]{64} AS build `).FindStringSubmatch(gone); version == nil || !strings.Contains(read(t, "../go.mod"), "\ngo "+version[1]) {
		t.Errorf("the image is not built by the Go of go.mod, by its digest")
	}
	if !strings.Contains(text, `ENTRYPOINT ["/usr/bin/claimq"]`) || !strings.Contains(text, "/out/claimq /usr/bin/claimq") || !strings.Contains(text, `CMD ["server"]`) {
		t.Error("the image does not start the server that was built")
	}
	environ := []string{"CLAIMQ_DATA_DIR=/var/lib/claimq", "CLAIMQ_NODE_ID=n1"}
	p.checkSettings(t, environ)
	asked := regexp.MustCompile(`(?m)^HEALTHCHECK (?:--\S+ )*CMD (\[.*\])$`).FindStringSubmatch(text)
	var command []string
	if asked == nil || json.Unmarshal([]byte(asked[1]), &command) != nil {
		t.Fatal("the image does not say how its health is asked")
	}
	p.checkHealth(t, environ, command)
}

// composeFile has the parts of a compose file that ours uses.
type composeFile struct {
	Name        string
	Node        any `yaml:"x-node"`
	Environment any `yaml:"x-environment"`
	Services    map[string]struct {
		Image       string
		Restart     string
		StopGrace   string   `yaml:"stop_grace_period"`
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		Ulimits     map[string]int
		Healthcheck struct {
			Test        []string
			Interval    string
			Timeout     string
			StartPeriod string `yaml:"start_period"`
			Retries     int
		}
		Secrets     []string
		Command     []string
		Environment map[string]string
		Ports       []string
		Volumes     []string
	}
	Volumes map[string]any
	Secrets map[string]struct{ File string }
}

// The compose file starts three nodes that know each other, with settings that claimq accepts, is
// not reachable from elsewhere, and monitors the nodes with our rules.
func (p packages) compose(t *testing.T) {
	var file composeFile
	readYAML(t, "compose/compose.yaml", &file)
	nodes := 0
	for name, s := range file.Services {
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s beyond loopback", name, port)
			}
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if _, named := file.Volumes[from]; named {
				continue
			}
			if _, err := os.Stat(filepath.Join("compose", from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, secret := range s.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
		if name == "prometheus" {
			if !regexp.MustCompile(`^prom/prometheus:v[\d.]+@sha256:[0-9a-f]{64}$`).MatchString(s.Image) {
				t.Errorf("%s is %s, which may be another image tomorrow", name, s.Image)
			}
			continue
		}
		nodes++
		environ := []string{"CLAIMQ_DATA_DIR=/var/lib/claimq"}
		for variable, value := range s.Environment {
			if variable == "CLAIMQ_KEYS_FILE" {
				value = noKeys(t)
			}
			environ = append(environ, variable+"="+value)
		}
		p.checkSettings(t, environ)
		if core, ok := s.Ulimits["core"]; !ok || core != 0 {
			t.Errorf("%s may dump its memory", name)
		}
		if len(s.Healthcheck.Test) == 0 || s.Healthcheck.Test[0] != "CMD" {
			t.Fatalf("the health of %s is asked by %q", name, s.Healthcheck.Test)
		}
		p.checkHealth(t, environ, s.Healthcheck.Test[1:])
		if s.Environment["CLAIMQ_NODE_ID"] != name || !s.ReadOnly || s.Environment["CLAIMQ_JOIN_KEY_FILE"] != "/run/secrets/join_key" {
			t.Errorf("%s is set up as %+v", name, s)
		}
	}
	if nodes != 3 {
		t.Errorf("there are %d nodes", nodes)
	}
	checkComposePrometheus(t)
}

// checkComposePrometheus lets promtool check the configuration, with its rules and its key where
// it expects them.
func checkComposePrometheus(t *testing.T) {
	dir := t.TempDir()
	config := strings.ReplaceAll(read(t, "compose/prometheus.yml"), "/run/secrets/prometheus_key", filepath.Join(dir, "key"))
	for name, content := range map[string]string{"prometheus.yml": config, "alerts.yml": read(t, "prometheus/alerts.yml"), "key": "k"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(t, "check", "config", filepath.Join(dir, "prometheus.yml"))
}

// The script makes secrets that nodes accept.
func (p packages) composeSecrets(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "secrets.sh")
	if err := procs.WriteExecutable(script, []byte(read(t, "compose/secrets.sh"))); err != nil {
		t.Fatal(err)
	}
	run := func() ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), script)
		cmd.Env = append(os.Environ(), "CLAIMQ="+p.binary)
		return cmd.CombinedOutput()
	}
	if out, err := run(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secrets := filepath.Join(dir, "secrets")
	cmd := exec.CommandContext(t.Context(), p.binary, "config", "show", "--node-id", "n1", "--data-dir", "d",
		"--keys-file", filepath.Join(secrets, "keys.yaml"), "--join-key-file", filepath.Join(secrets, "join.key"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ops (operator, ") || !strings.Contains(string(out), "prometheus (reader, ") {
		t.Errorf("%v\n%s", err, out)
	}
	for name, pattern := range map[string]string{"join.key": `^[0-9a-f]{64}\n$`, "operator.key": `^claimq_\w+\n$`, "prometheus.key": `^claimq_\w+\n$`} {
		if content := read(t, filepath.Join(secrets, name)); !regexp.MustCompile(pattern).MatchString(content) {
			t.Errorf("%s is %q", name, content)
		}
	}
	if out, err := run(); err == nil {
		t.Errorf("it makes the secrets again: %s", out)
	}
}
