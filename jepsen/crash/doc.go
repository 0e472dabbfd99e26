// Package crash starts clusters from what a crash after each change of a disk has left: its
// tests record what real processes do to their disks, and cut the power wherever they can.
package crash
