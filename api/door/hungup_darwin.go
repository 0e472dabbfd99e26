package door

import "golang.org/x/sys/unix"

// pollGone is the poll event of a socket whose peer sends no more. macOS reports a hangup even if only the sending
// side was closed.
const pollGone = unix.POLLHUP
