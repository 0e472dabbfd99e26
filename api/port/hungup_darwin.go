package port

import "golang.org/x/sys/unix"

// pollGone is what poll tells of a socket whose other side sends no more: macOS
// hangs up for a closed sending side too.
const pollGone = unix.POLLHUP
