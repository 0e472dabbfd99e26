// Package lossyfs is a file system that loses, at a power cut, what was not
// synced.
//
// It is mounted with FUSE, which needs root, and held in memory: a disk of the
// cluster under test. Cut takes the power away: from then on every call fails
// with EIO. Restore brings back the disk as it was synced.
//
// What a cut takes is what POSIX lets it take, which is more than most file
// systems do:
//
//   - pages of 4 KiB that were written after the file's last fsync or fdatasync,
//     and the file's size, if it changed since;
//   - names that were created, renamed or removed after their folder's last
//     fsync. Syncing a file does not sync its name.
//
// A torn cut lets a random part of that survive: each page or not, the new size
// or not, and the changes of each folder up to a random one.
//
// It can be full (Fill) or not answer (Hang), too.
//
// Not modelled: tearing within a page, pages that rot, a disk that lies about
// fsync, links, renames between folders (they are refused with EXDEV), syncing
// the whole file system, owners, times and extended attributes.
package lossyfs
