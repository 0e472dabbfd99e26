package main

import (
	"context"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// system is a system that can be measured.
type system struct {
	name    string
	program string // the name that finder looks for
	durable string // what a confirmation waits for
	install string // how to install it
	most    int    // producers that it can be measured with; 0: any number
	// version asks the program for its version. It returns an error if it cannot be measured.
	version func(ctx context.Context, path string) (string, error)
	// start starts the program and returns when it serves.
	start func(ctx context.Context, path string, s *site) (queue, error)
}

type installed struct {
	system
	path, release string
}

// peers returns the systems that claimq is compared with.
func peers() []system { return []system{jetStream(), rabbitMQ(), beanstalk()} }

// finder finds the systems to measure.
type finder struct {
	dirs  []string // where programs are
	only  []string // programs of the peers to look for; nil: all
	count int      // the largest number of producers
}

// programDirs returns the folders to search, in this order.
func programDirs() []string {
	dirs := []string{filepath.Join(build.Default.GOPATH, "bin")} // go install may have made a newer one than the system's
	return append(append(dirs, filepath.SplitList(os.Getenv("PATH"))...), "/usr/sbin", "/usr/lib/rabbitmq/bin")
}

// program returns the path of the named program, or "" if it is missing.
func (f finder) program(name string) string {
	for _, dir := range f.dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// all returns claimq and the peers that can be measured. missing says why the others cannot.
func (f finder) all(ctx context.Context, binary string) (found []installed, missing []string, err error) {
	own := claimq()
	release, err := own.version(ctx, binary)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; %s", err, own.install)
	}
	found = append(found, installed{own, binary, release})
	for _, s := range peers() {
		if f.only != nil && !slices.Contains(f.only, s.program) {
			continue
		}
		if s.most > 0 && f.count > s.most {
			missing = append(missing, fmt.Sprintf("%s: it is measured with at most %d producers", s.name, s.most))
			continue
		}
		path := f.program(s.program)
		if path == "" {
			missing = append(missing, fmt.Sprintf("%s: %s is not installed; %s", s.name, s.program, s.install))
			continue
		}
		release, err := s.version(ctx, path)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v; %s", s.name, err, s.install))
			continue
		}
		found = append(found, installed{s, path, release})
	}
	return found, missing, nil
}

// versionMax bounds the time for a program to print its version.
const versionMax = time.Minute

// say runs the program and returns what match finds in its output.
func say(ctx context.Context, match *regexp.Regexp, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionMax)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, strings.Join(args, " "), err)
	}
	m := match.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s %s says no version: %s", path, strings.Join(args, " "), text)
	}
	return string(m[1]), nil
}
