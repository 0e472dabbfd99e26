package hosts

import (
	"fmt"
	"os/exec"
)

// Tools returns the names of the programs that hosts need.
func Tools() []string { return []string{"ip", "nft", "tc"} }

// FindTool returns the path of a program that manages networks: those are
// often not on the PATH of a shell.
func FindTool(name string) (path string, err error) {
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", name, exec.ErrNotFound)
}
