package storage

import "os"

// syncData puts the file on disk. macOS has no sync of the data alone that the drive's own
// cache obeys.
func syncData(f *os.File) error { return f.Sync() }

// sendData and awaitData do nothing, because macOS does not offer them for parts of a file.
func sendData(*os.File, int64, int64) error  { return nil }
func awaitData(*os.File, int64, int64) error { return nil }

// dropCached does nothing: macOS has no call for it.
func dropCached(*os.File) error { return nil }
