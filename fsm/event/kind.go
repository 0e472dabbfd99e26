package event

// Kind says what happened.
type Kind uint8

// The events. The numbers are in snapshots and never change.
const (
	Submitted           Kind = 1
	Scheduled           Kind = 2 // the message is the time until which it waits
	Claimed             Kind = 3
	Released            Kind = 4
	Failed              Kind = 5 // the attempt; the message is the error
	Requeued            Kind = 6 // it is pending again after a claim
	LeaseExpired        Kind = 7
	Completed           Kind = 8
	Retried             Kind = 9
	CancelRequested     Kind = 10
	Cancelled           Kind = 11
	Deleted             Kind = 12
	Expired             Kind = 13 // its expires_at passed before a claim
	FinalizationClaimed Kind = 14
	Finalized           Kind = 15 // the event of the parent's end follows
	Signalled           Kind = 16 // its signal has come
	StepsAdded          Kind = 17 // to a parent, by the claim of a step

	// Operators' actions; the message names the object.
	TypeChanged     Kind = 32
	ScheduleSet     Kind = 33
	ScheduleDeleted Kind = 34
	NodeSet         Kind = 35
	NodeRemoved     Kind = 36
	LevelRaised     Kind = 37
	TrailChanged    Kind = 38

	// Actions that change nothing in the state; a Tell records them.
	MemberAdded           Kind = 39
	MemberRemoved         Kind = 40
	MemberPromoted        Kind = 41
	MemberDemoted         Kind = 42
	LeadershipTransferred Kind = 43
	SnapshotTaken         Kind = 44
	BackupSaved           Kind = 45
	Restored              Kind = 46
	KeysReloaded          Kind = 47

	// Join tokens; the message says which one, and which node used it.
	JoinTokenMade    Kind = 48
	JoinTokenUsed    Kind = 49
	JoinTokenRevoked Kind = 50
	JoinTokenExpired Kind = 51

	// Backups and restores; BackupSaved and Restored are their successful ends.
	BackupBegun   Kind = 52
	BackupBroken  Kind = 53
	RestoreBegun  Kind = 54
	RestoreBroken Kind = 55

	DefaultsChanged Kind = 56
	ShareChanged    Kind = 57

	Last = ShareChanged
)

// Kinds is a set of kinds. The zero value means all.
type Kinds uint64

// With returns the set with k added.
func (s Kinds) With(k Kind) Kinds { return s | 1<<k }

// Has reports whether k is in the set.
func (s Kinds) Has(k Kind) bool { return s == 0 || s>>k&1 != 0 }

// IsAct reports whether it is an operator's action, which concerns no task.
func (k Kind) IsAct() bool { return k >= TypeChanged }

// IsTold reports whether a Tell records it.
func (k Kind) IsTold() bool {
	return k >= MemberAdded && k <= KeysReloaded || k >= BackupBegun && k <= RestoreBroken
}

var names = [...]string{
	FinalizationClaimed: "finalization_claimed",
	Finalized:           "finalized",
	Submitted:           "submitted",
	Scheduled:           "scheduled",
	Claimed:             "claimed",
	Released:            "released",
	Failed:              "failed",
	Requeued:            "requeued",
	LeaseExpired:        "lease_expired",
	Completed:           "completed",
	Retried:             "retried",
	CancelRequested:     "cancel_requested",
	Cancelled:           "cancelled",
	Deleted:             "deleted",
	Expired:             "expired",
	Signalled:           "signalled",
	StepsAdded:          "steps_added",

	TypeChanged:     "type_changed",
	ScheduleSet:     "schedule_set",
	ScheduleDeleted: "schedule_deleted",
	NodeSet:         "node_set",
	NodeRemoved:     "node_removed",
	LevelRaised:     "level_raised",
	TrailChanged:    "trail_changed",

	MemberAdded:           "member_added",
	MemberRemoved:         "member_removed",
	MemberPromoted:        "member_promoted",
	MemberDemoted:         "member_demoted",
	LeadershipTransferred: "leadership_transferred",
	SnapshotTaken:         "snapshot_taken",
	BackupSaved:           "backup_saved",
	Restored:              "restored",
	KeysReloaded:          "keys_reloaded",

	JoinTokenMade:    "join_token_made",
	JoinTokenUsed:    "join_token_used",
	JoinTokenRevoked: "join_token_revoked",
	JoinTokenExpired: "join_token_expired",

	BackupBegun:   "backup_begun",
	BackupBroken:  "backup_broken_off",
	RestoreBegun:  "restore_begun",
	RestoreBroken: "restore_broken_off",

	DefaultsChanged: "defaults_changed",
	ShareChanged:    "share_changed",
}

// String returns the API's name of the kind, or "" if it is unknown.
func (k Kind) String() string {
	if int(k) >= len(names) {
		return ""
	}
	return names[k]
}

// ParseKind is the inverse of Kind.String.
func ParseKind(name string) (k Kind, ok bool) {
	for i, n := range names {
		if n != "" && n == name {
			return Kind(i), true
		}
	}
	return 0, false
}
