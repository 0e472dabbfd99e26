package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// machineCount is the number of machines n1, n2, ... in the laboratory, not counting the
// operator's.
const machineCount = 6

// diskSize is the size of a machine's disk for /var/lib/claimq.
const diskSize = "256m"

// lab is a network of machines: each has an address, 10.0.0.1 for n1, a folder for its
// files, a small disk in memory for its data, and one service, claimq. They share one
// network namespace, from which nothing leads outside.
//
// systemctl, journalctl and scp are stand-ins for those of a real machine. /etc/claimq,
// /var/lib/claimq and /srv in commands and configurations refer to the machine's folder.
type lab struct {
	dir      string
	bin      string // folder of the binary
	keeper   *exec.Cmd
	machines map[string]*machine // "" is the operator's own
}

type machine struct {
	name    string
	dir     string
	service *exec.Cmd // claimq, nil before its first start
	ended   chan struct{}
}

// newLab makes the laboratory. It needs root.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir(), bin: t.TempDir(), machines: map[string]*machine{}}
	if _, err := procs.Build(t.Context(), l.bin); err != nil {
		t.Fatal(err)
	}
	setup := "set -e; ip link set lo up; mount --make-rprivate /; "
	for i := range machineCount + 1 {
		name := ""
		if i > 0 {
			name = fmt.Sprintf("n%d", i)
			setup += fmt.Sprintf("ip addr add 10.0.0.%d/32 dev lo; ", i)
		}
		m := &machine{name: name, dir: filepath.Join(l.dir, "m"+name)}
		setup += fmt.Sprintf("mount -t tmpfs -o size=%s tmpfs %s/var/lib/claimq; ", diskSize, m.dir)
		for _, folder := range []string{"etc/claimq", "var/lib/claimq", "srv"} {
			if err := os.MkdirAll(filepath.Join(m.dir, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		l.machines[name] = m
	}
	ready, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.keeper = exec.Command("sh", "-c", setup+"echo up; exec sleep 1000000")
	l.keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	l.keeper.Stdout = w
	if err := l.keeper.Start(); err != nil {
		t.Fatalf("make namespaces for network and mounts, which root can: %v", err)
	}
	_ = w.Close()
	if _, err := ready.Read(make([]byte, 3)); err != nil {
		t.Fatalf("give the machines their addresses and disks, with ip and mount: %v", err)
	}
	_ = ready.Close()
	t.Cleanup(l.close)
	return l
}

func (l *lab) close() {
	for _, m := range l.machines {
		m.signal(syscall.SIGKILL)
		m.wait()
	}
	_ = l.keeper.Process.Kill()
	_ = l.keeper.Wait()
}

// in returns a command on the machine, in the laboratory's network.
func (l *lab) in(ctx context.Context, m *machine, args ...string) *exec.Cmd {
	keeper := fmt.Sprintf("/proc/%d/ns/", l.keeper.Process.Pid)
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + keeper + "net", "--mount=" + keeper + "mnt", "--"}, args...)...)
	cmd.Env = append(os.Environ(), "GOGC=", "PATH="+l.bin+":"+os.Getenv("PATH"), "HOME="+m.dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs a command line on a machine and returns its output, with the names of folders as
// on a real machine.
func (l *lab) run(ctx context.Context, name, command string) (string, error) {
	m := l.machines[name]
	words := strings.Fields(command)
	switch words[0] {
	case "systemctl":
		noBlock := words[1] == "--no-block"
		if noBlock {
			words = words[1:]
		}
		return l.systemctl(ctx, m, words[1], !noBlock)
	case "journalctl":
		return l.shell(ctx, m, strings.Replace(command, "journalctl -u claimq", "tail journal", 1))
	case "scp":
		if name, file, ok := strings.Cut(words[1], ":"); ok {
			return l.copyFrom(name, file)
		}
		return l.copyTo(words[1:])
	case "die": // like a machine that loses power
		return l.systemctl(ctx, m, "kill", false)
	}
	return l.shell(ctx, m, command)
}

// shell runs a command line with sh. Variables that it exports stay.
func (l *lab) shell(ctx context.Context, m *machine, command string) (string, error) {
	script := "cd " + m.dir + "\ntest -e .exported && . ./.exported\n" + m.real(command) + "\ncode=$?\nexport -p > .exported\nexit $code\n"
	cmd := l.in(ctx, m, "sh", "-c", script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return m.shown(out.String()), err
}

func (m *machine) real(text string) string {
	return strings.NewReplacer("/etc/claimq", m.dir+"/etc/claimq", "/var/lib/claimq", m.dir+"/var/lib/claimq", "/srv/", m.dir+"/srv/").Replace(text)
}

func (m *machine) shown(text string) string { return strings.ReplaceAll(text, m.dir+"/", "/") }

// copyTo does scp FILE... MACHINE:FOLDER from the operator's machine.
func (l *lab) copyTo(args []string) (string, error) {
	name, folder, _ := strings.Cut(args[len(args)-1], ":")
	to, ok := l.machines[name]
	if !ok {
		return "", fmt.Errorf("no machine is called %q", name)
	}
	var files []string
	for _, pattern := range args[:len(args)-1] {
		matches, err := filepath.Glob(filepath.Join(l.machines[""].dir, pattern))
		if err != nil || len(matches) == 0 {
			return "", fmt.Errorf("scp %s: no such file", pattern)
		}
		files = append(files, matches...)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		b = bytes.ReplaceAll(b, []byte(l.machines[""].dir+"/"), []byte(to.dir+"/"))
		if err := os.WriteFile(filepath.Join(to.real(folder), filepath.Base(file)), b, 0o600); err != nil {
			return "", err
		}
	}
	return "", nil
}

// copyFrom does scp MACHINE:FILE . to the operator's machine.
func (l *lab) copyFrom(name, pattern string) (string, error) {
	from, ok := l.machines[name]
	if !ok {
		return "", fmt.Errorf("no machine is called %q", name)
	}
	files, err := filepath.Glob(from.real(pattern))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("scp %s:%s: no such file", name, pattern)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(l.machines[""].dir, filepath.Base(file)), b, 0o600); err != nil {
			return "", err
		}
	}
	return "", nil
}

// startTimeout is the time after which a node tells systemd that it has started, even if it
// has not caught up.
const startTimeout = 30 * time.Second

// systemctl does what the unit in deploy/systemd says. It prints the same as systemd.
func (l *lab) systemctl(ctx context.Context, m *machine, verb string, wait bool) (string, error) {
	switch verb {
	case "start":
		return l.start(ctx, m, wait)
	case "stop":
		m.signal(syscall.SIGTERM)
		m.wait()
		return "", nil
	case "restart":
		m.signal(syscall.SIGTERM)
		m.wait()
		return l.start(ctx, m, wait)
	case "kill": // always with --signal KILL
		m.signal(syscall.SIGKILL)
		m.wait()
		return "", nil
	case "reload":
		m.signal(syscall.SIGHUP)
		return "", nil
	case "is-active":
		if m.runs() {
			return "active\n", nil
		}
		return "failed\n", errors.New("exit status 3")
	}
	return "", fmt.Errorf("systemctl %s: the stand-in has no such verb", verb)
}

func (m *machine) runs() bool {
	if m.service == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

func (m *machine) signal(sig syscall.Signal) {
	if m.runs() {
		_ = m.service.Process.Signal(sig)
	}
}

func (m *machine) wait() {
	if m.service != nil {
		<-m.ended
	}
}

// start starts the service and, if wait, waits until it serves or has ended, but not longer
// than systemd would.
func (l *lab) start(ctx context.Context, m *machine, wait bool) (string, error) {
	journal, err := os.OpenFile(filepath.Join(m.dir, "journal"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer journal.Close()
	info, err := journal.Stat()
	if err != nil {
		return "", err
	}
	m.service = l.in(context.Background(), m, "claimq", "server", "--config", m.real("/etc/claimq/claimq.yaml"))
	m.service.Stdout, m.service.Stderr = journal, journal
	if err := m.service.Start(); err != nil {
		return "", err
	}
	m.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(m.service, m.ended)
	timeout := time.After(startTimeout)
	for wait {
		b, err := os.ReadFile(journal.Name())
		if err != nil {
			return "", err
		}
		if bytes.Contains(b[info.Size():], []byte("serving")) {
			return "", nil
		}
		select {
		case <-m.ended:
			return "Job for claimq.service failed because the control process exited with error code.\n", errors.New("exit status 1")
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not serve: %w\n%s", m.name, ctx.Err(), b)
		case <-timeout:
			return "", nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	return "", nil
}
