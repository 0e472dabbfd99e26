package cluster

import "os"

// syncData puts the file on disk. macOS has no sync of the data alone that the
// drive's own cache obeys.
func syncData(f *os.File) error { return f.Sync() }
