// Package faults does to a cluster of real processes what machines, disks and
// networks do to it.
//
//	list, err := faults.ByName("partition-leader")
//	ownHosts, ownDisks := faults.Ground(list...)
//	c, err := faults.Start(ctx, faults.Config{Nodes: 3, Hosts: ownHosts, Disks: ownDisks, ...})
//	recover, err := list[0].Inject(ctx, c, rand.New(rand.NewSource(seed)))
//	...
//	err = recover(ctx)
//
// There are, by the beginning of their names:
//
//   - kill, pause, rolling-restart: of processes, with SIGKILL, SIGSTOP, SIGTERM.
//   - partition: no packets between some nodes, one way or both. Callers reach
//     all nodes.
//   - net: packets late, lost, twice, out of order, or few at a time.
//   - disk: fsync and fdatasync slow, or failing with EIO, by strace.
//   - power: the process ends, and its disk loses what was not synced; torn, a
//     random part of it.
//
// All but partitions, delays and what happens to processes need root, Linux, and
// the programs nft, ip, tc and strace.
//
// Faults can be made together, also as one with a name like kill-one+net-slow:
// each undoes only what it did itself. All that is chosen at random is chosen by
// the seed; what the machine makes of it, and which packets the hub loses, is
// not.
package faults
