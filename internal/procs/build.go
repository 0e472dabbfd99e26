package procs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Environ returns the environment of the go command for all builds by tests: like releases,
// without C and without paths of this machine, so that everything is compiled only once,
// and without debug information, which would take half of the linking time. Each module is
// built by its own go.mod.
func Environ() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false -trimpath -ldflags=-w")
}

// module is claimq's own module.
const module = "github.com/claimq/claimq"

// Root returns the folder of claimq's module, as the module in which this process was
// started sees it: that is claimq's, or one that replaces it by a folder.
func Root(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// ModuleOf returns the folder of the module that a folder below root belongs to, and the
// folder as the go command names it there. A separate module, such as the laboratory's,
// is not part of claimq's.
func ModuleOf(root, folder string) (module, pkg string) {
	pkg = "."
	for module = filepath.Join(root, folder); module != root; module = filepath.Dir(module) {
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			break
		}
		pkg = path.Join(filepath.Base(module), pkg)
	}
	return module, "./" + pkg
}

// BuiltEnv names a variable with the path of a claimq that was built from the current
// sources (.ci/test sets it).
const BuiltEnv = "CLAIMQ_BUILT"

// Build builds the claimq binary into dir and returns its path. It must be called inside the module, or in one that
// needs it. tags are Go build tags. Without tags it is the binary in BuiltEnv, if that is set, or one that tests of all
// packages share, so that it is linked once.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	if err := lookAtSources(root); err != nil {
		return "", err
	}
	if len(tags) > 0 {
		return Edited{}.Build(ctx, dir, "-tags", strings.Join(tags, ","))
	}
	binary := filepath.Join(dir, "claimq")
	if built := os.Getenv(BuiltEnv); built != "" {
		return binary, os.Symlink(built, binary)
	}
	return binary, linkShared(ctx, root, binary)
}

// linkShared makes binary a link to the shared binary of the module at root. The go command
// does not change that while it is up to date.
func linkShared(ctx context.Context, root, binary string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "claimq-tests", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:16])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the shared binary: %w", err)
	}
	// One at a time, because the go command first removes a binary that it replaces.
	lock, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("lock the folder of the shared binary: %w", err)
	}
	defer lock.Close()
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock the folder of the shared binary: %w", err)
	}
	built, err := Edited{}.Build(ctx, dir)
	if err != nil {
		return err
	}
	if os.Link(built, binary) == nil { // so it stays when another one is built
		return nil
	}
	return os.Symlink(built, binary)
}

// lookAtSources reads every Go file of the module. The go command caches the result of a
// test until a file changes that the test has read, but does not see the files that the
// build reads. Without this, tests of processes would pass forever.
func lookAtSources(root string) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case !d.IsDir() && (strings.HasSuffix(path, ".go") || d.Name() == "go.mod" || d.Name() == "go.sum"):
			if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at the sources: %w", err)
	}
	return nil
}

// WriteExecutable writes a file that can be run at once. A process forked while a file is
// open for writing inherits that until it executes, and the system refuses to run a file
// that is open for writing ("text file busy", golang.org/issue/22315). So nothing is forked
// until the file is closed.
func WriteExecutable(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}
