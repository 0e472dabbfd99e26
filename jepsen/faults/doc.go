// Package faults does to a cluster of real processes what machines, disks and
// networks do to it: kills and pauses, partitions and bad links, slow and
// failing disks, and power losses.
//
//	c, err := faults.Start(ctx, faults.Config{...})
//	list, err := faults.ByName("partition-leader")
//	recover, err := list[0].Inject(ctx, c, rand.New(rand.NewSource(seed)))
//	...
//	err = recover(ctx)
//
// Faults can be made together: each undoes only what it did itself. All that is
// chosen at random is chosen by the seed; what the machine then makes of it is
// not.
package faults
