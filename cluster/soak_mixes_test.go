package cluster

// soakGroup names a group of faults.
type soakGroup string

const (
	faultNetwork  soakGroup = "network"     // hosts and links
	faultReorder  soakGroup = "reordering"  // single connections: messages overtake each other
	faultProcess  soakGroup = "processes"   // stops and starts
	faultCrash    soakGroup = "crashes"     // at a durable write
	faultTransfer soakGroup = "leadership"  // is transferred
	faultMembers  soakGroup = "members"     // get or lose their vote
	faultDisk     soakGroup = "disks"       // slow ones, and snapshots
	faultClock    soakGroup = "wall clocks" // jump
	faultLoad     soakGroup = "load"        // more than the workers'
)

// soakMixRestores is the mix whose seeds all restore a backup.
const soakMixRestores = "restores"

// soakMixes returns, by name, how many times more often than usual the faults of some
// groups are played in a seed, because situations that take several faults of a kind at
// once are rare when all are equally frequent.
func soakMixes() map[string]map[soakGroup]int {
	return map[string]map[soakGroup]int{
		"everything":                            {},
		"reordered connections, with transfers": {faultReorder: 3, faultTransfer: 12, faultLoad: 3},
		"crashes at writes":                     {faultCrash: 6, faultTransfer: 2},
		"partitions":                            {faultNetwork: 4},
		soakMixRestores:                         {faultDisk: 4, faultProcess: 2},
		"members":                               {faultMembers: 6, faultCrash: 2, faultNetwork: 2},
	}
}
