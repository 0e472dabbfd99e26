package door

import "golang.org/x/sys/unix"

// pollGone is the poll event of a socket whose peer sends no more.
const pollGone = unix.POLLRDHUP
