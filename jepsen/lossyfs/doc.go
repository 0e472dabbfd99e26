// Package lossyfs is a file system that loses unsynced data in a power cut.
//
// It is mounted with FUSE, which needs root, and held in memory, as a disk of the cluster
// under test. Cut cuts the power: from then on every call fails with EIO. Restore brings
// back the synced state of the disk.
//
// A cut loses everything that POSIX permits to be lost, which is more than most file
// systems lose:
//
//   - pages of 4 KiB that were written after the file's last fsync or fdatasync,
//     and the file's size, if it changed since;
//   - names that were created, renamed or removed after their folder's last
//     fsync. Syncing a file does not sync its name.
//
// A torn cut lets a random part of that survive: each page or not, the new size or not, and
// the changes of each folder up to a random one.
//
// It can also be full (Fill) or stop answering (Hang).
//
// Not modelled: tearing within a page, pages that rot, a disk that lies about fsync, links,
// renames between folders (they fail with EXDEV), syncing the whole file system, owners,
// times and extended attributes.
package lossyfs
