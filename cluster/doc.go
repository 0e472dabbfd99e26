// Package cluster implements a node: the peer port, proposing and reading through Raft, the
// leader's duties, membership and snapshots.
//
// It does not decide anything about tasks, which package fsm does in the same way on every
// node, and it does not speak HTTP to users, which package api does.
//
// Everything a leader does belongs to one leadership and ends with it: lease timers, due
// ticks and evictions, and waiting claims, which [Node.Claim] parks in order of arrival and
// proposes when there is something for them. Commands of a feature level that the cluster
// has not reached are refused; [Node.Upgrade] raises it.
//
// A node is built in layers. Most files have one type, which knows only those before it in this order, a good one
// for reading:
//
//	config.go        Config: the settings
//	rafthandle.go    raftHandle: Raft, which may be restarted; raftlogger.go filters its log lines
//	core.go          core: who the node is, its Raft, its copy of the state, its calls to other nodes
//	role.go          role: whether this node leads; leadership, the scope of everything that a leader does
//	read.go          reads: linearizable and stale reads
//	propose.go       proposals: commands, and claims that wait
//	status.go        statuses: what each node reports about itself, and the view of the cluster
//	knownmembers.go  knownMembers: which nodes this one takes for members
//	membership.go    membership: changes of the members, one at a time
//	standing.go      standing: whether this node is still a member, and its address
//	join.go          joins: how a node becomes a member
//	transfer.go      transfers: handing the leadership over
//	operators.go     operators: recording in the trail what operators do
//	memberchange.go  memberChanges: removing, promoting and demoting members
//	featurelevel.go  featureLevels: the feature level
//	agreement.go     agreement and checkpoints: whether the nodes have applied the same
//	leaseclock.go    leaseClocks: the clocks of a leadership
//	membercheck.go   memberChecks: a leader's regular checks of the members
//	snapshots.go     snapshots: when they are taken
//	backup.go        backups: saving and restoring the state
//	duties.go        duties: what a leader proposes when it is due; the largest are in leases.go and schedules.go
//	voterdisk.go     voterDisks: the disks of the voters
//	leader.go        leaders: begins and ends leaderships
//	startproof.go    startProof: whether this data folder is an old copy
//	metrics.go       nodeStats: counters and histograms; gauges.go has the current values
//	node.go          Node: composes all of these
//	open.go          Open: starts a node over its data folder
//	recover.go       Recover: makes a new cluster of one node's data folder
//
// Its subpackages know no node; this package creates them and tells them what they need:
//
//	batch     commands on their way into the log, and waiting claims
//	clocks    the machine's clocks, and the members' wall clocks
//	confirm   between Raft and its transport: confirmed reads, heartbeats, held votes
//	joining   how nodes meet before they are members of a cluster
//	lease     when a lease has run out
//	nodekey   a node's key, from which its UUID is derived
//	peer      the port at which nodes talk to each other
//	replica   this node's copy of the state, and the memory and disk that it leaves
//	storage   what a node keeps on disk
package cluster
