package hosts

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
)

// nodeOf returns which of the processes is at the other end of a connection
// that was accepted on 127.0.0.1, by what the kernel tells in /proc. It is not
// known where there is no /proc, or the process has ended.
func nodeOf(conn net.Conn, pids map[int]int) (node int, known bool) {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	local, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return 0, false
	}
	inode, ok := socketInode(remote.Port, local.Port)
	if !ok {
		return 0, false
	}
	for pid, node := range pids {
		if holds(pid, "socket:["+inode+"]") {
			return node, true
		}
	}
	return 0, false
}

// socketInode returns the inode of the socket on 127.0.0.1 that is connected
// from one port to the other.
func socketInode(from, to int) (inode string, ok bool) {
	// Of this thread: the first thread of the process may be in another host.
	f, err := os.Open("/proc/thread-self/net/tcp")
	if err != nil {
		return "", false
	}
	defer f.Close()
	ends := [2]string{fmt.Sprintf("0100007F:%04X", from), fmt.Sprintf("0100007F:%04X", to)}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == ends[0] && fields[2] == ends[1] {
			return fields[9], true
		}
	}
	return "", false
}

// holds reports whether the process has a descriptor of what the name says.
func holds(pid int, name string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if target, err := os.Readlink(dir + "/" + entry.Name()); err == nil && target == name {
			return true
		}
	}
	return false
}
