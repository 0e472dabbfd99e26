package command

import (
	"slices"

	"github.com/claimq/claimq/fsm/record"
)

// ClaimNext claims up to Limit ready tasks, which are in Result.Claims. If no task is ready, the
// request is not remembered.
type ClaimNext struct {
	WorkerID  string
	Types     []string // nil = any; sorted, without duplicates
	SortBy    SortBy
	Ascending bool
	Limit     int32  // 1 to 1,000
	LeaseMS   int64  // 0 = the task's, else the type's, else the server's
	RequestID string // claim_request_id, "" = none
	// RequestPlace is the claim's place among the calls with that RequestID. Each is
	// remembered by itself. 0 unless several calls share the id.
	RequestPlace uint32
	// MoreAttempts takes only tasks with more attempts left than this, 0 to
	// AttemptsLeftMax; 0 = any. Tasks without a limit always qualify.
	MoreAttempts int32
	// Runs also claims the tasks behind the head of a group, in their order, up to one that is not
	// pending. It has no effect in fair types, where shares take turns instead.
	Runs bool
}

func (ClaimNext) kind() Kind { return KindClaimNext }

func (c ClaimNext) about() About {
	return About{Known: true, Claims: true, Claimer: c.WorkerID, Types: c.Types, Changes: int(c.Limit)}
}

// SortBy is the order of a ClaimNext.
type SortBy uint8

// The orders of ClaimNext. SortPriority takes the highest priority first (the lowest if
// Ascending), and the oldest first among equals. SortCreatedAt takes the newest first, or
// the oldest if Ascending. The oldest has the lowest id. SortRandom takes tasks at random.
const (
	SortPriority SortBy = iota
	SortCreatedAt
	SortRandom
)

// AttemptsLeftMax bounds ClaimNext.MoreAttempts.
const AttemptsLeftMax = 1000

// ClaimTask claims the task ID for WorkerID, or extends the claim if WorkerID already has
// it.
type ClaimTask struct {
	ID        uint64
	WorkerID  string
	LeaseMS   int64 // as in ClaimNext
	RequestID string
}

func (ClaimTask) kind() Kind { return KindClaimTask }

func (c ClaimTask) about() About {
	return About{Known: true, ID: c.ID, WorkerID: c.WorkerID, Changes: 1}
}

// code reads or writes the fields of
//
//	message ClaimNext {
//	  string worker_id = 1;
//	  repeated string task_types = 2;  // none = any; sorted, each once
//	  SortBy sort_by = 3;
//	  bool ascending = 4;
//	  int32 limit = 5;
//	  int64 lease_ms = 6;      // 0 the task's, else the default
//	  string request_id = 7;
//	  int32 more_attempts = 8;  // only tasks with more attempts left than this
//	  uint32 request_place = 9;  // among the calls with that request_id
//	  bool runs = 50;            // with the head of a group also those behind it
//	}
//
//	enum SortBy {
//	  SORT_BY_PRIORITY = 0;
//	  SORT_BY_CREATED_AT = 1;
//	  SORT_BY_RANDOM = 2;
//	}
func (c ClaimNext) code(f fields) (Command, fields) {
	c.fields(&f)
	return done(c, &f)
}

func (c *ClaimNext) fields(f *fields) {
	f.NameAfter(1, &c.WorkerID, &f.before.worker)
	f.types(2, &c.Types)
	f.Enum(3, (*uint8)(&c.SortBy), uint8(SortRandom))
	f.Bool(4, &c.Ascending)
	f.Int32(5, &c.Limit)
	f.Int(6, &c.LeaseMS)
	f.Text(7, &c.RequestID)
	f.Int32(8, &c.MoreAttempts)
	f.Uint32(9, &c.RequestPlace)
	f.Bool(50, &c.Runs)
}

// AppendChoice appends the fields that decide which tasks c claims, encoded as in the log.
// The lease is left out because a repeat may ask for another one, the worker because it is
// compared separately.
func (c ClaimNext) AppendChoice(b []byte) []byte {
	c.WorkerID, c.RequestID, c.RequestPlace, c.LeaseMS = "", "", 0, 0
	f := fields{Fields: record.To(append(b, byte(KindClaimNext)))}
	c.fields(&f)
	return f.Out
}

// SameChoice reports whether AppendChoice appends the same for both.
func (c *ClaimNext) SameChoice(other *ClaimNext) bool {
	return c.SortBy == other.SortBy && c.Ascending == other.Ascending && c.Limit == other.Limit &&
		c.MoreAttempts == other.MoreAttempts && c.Runs == other.Runs && slices.Equal(c.Types, other.Types)
}

// AppendChoice appends the fields that decide which task c claims, as
// ClaimNext.AppendChoice does.
func (c ClaimTask) AppendChoice(b []byte) []byte {
	f := record.To(append(b, byte(KindClaimTask)))
	f.ID(1, &c.ID)
	return f.Out
}

// code reads or writes the fields of
//
//	message ClaimTask {
//	  uint64 id = 1;
//	  string worker_id = 2;
//	  int64 lease_ms = 3;
//	  string request_id = 4;
//	}
func (c ClaimTask) code(f fields) (Command, fields) {
	f.ID(1, &c.ID)
	f.Text(2, &c.WorkerID)
	f.Int(3, &c.LeaseMS)
	f.Text(4, &c.RequestID)
	return done(c, &f)
}
