package port

import "golang.org/x/sys/unix"

// pollGone is what poll tells of a socket whose other side sends no more.
const pollGone = unix.POLLRDHUP
