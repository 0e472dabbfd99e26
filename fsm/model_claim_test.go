package fsm

import (
	"math/big"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/fsm/record"
)

// requested goes by what is remembered of the call of the claim request, else claims, and
// remembers what was taken.
func (s *model) requested(id string, call modelCall, claim func() Result) Result {
	if id == "" {
		return claim()
	}
	s.requests = slices.DeleteFunc(s.requests, func(r *modelRequest) bool {
		return r.id == id && r.endedU >= 0 && s.u >= r.endedU+600_000
	})
	for _, r := range s.requests {
		for _, c := range r.calls {
			switch {
			case r.id != id || c.place != call.place:
			case c.worker != call.worker || !cmp.Equal(c.what, call.what):
				return Result{Code: CodeInvalidRequest}
			default:
				return Result{Repeated: true, Claims: s.claimsAgain(c.claims)}
			}
		}
	}
	result := claim()
	if result.Code != "" || result.Repeated || len(result.Claims) == 0 {
		return result
	}
	for _, c := range result.Claims {
		call.claims = append(call.claims, record.ClaimRef{TaskID: c.Task.ID, Token: c.Token})
	}
	i := slices.IndexFunc(s.requests, func(r *modelRequest) bool { return r.id == id && len(r.claims()) < s.full })
	if i < 0 {
		i = len(s.requests)
		s.requests = append(s.requests, &modelRequest{id: id})
	}
	r := s.requests[i]
	r.calls, r.endedU = append(slices.Clone(r.calls), call), -1
	for n := 0; ; s.requests = s.requests[1:] { // the oldest make room
		n = 0
		for _, r := range s.requests {
			n += len(r.claims())
		}
		if n <= s.most {
			return result
		}
	}
}

// claims has the claims of all calls.
func (r *modelRequest) claims() (claims []record.ClaimRef) {
	for _, c := range r.calls {
		claims = append(claims, c.claims...)
	}
	return claims
}

// otherRequest tells whether the id is remembered of another request.
func (s *model) otherRequest(c command.ClaimNext) bool {
	try := s.copy()
	return try.claimNext(c, &Result{}).Code != ""
}

// claimsAgain is a repeated answer: the current tasks.
func (s *model) claimsAgain(refs []record.ClaimRef) []Claim {
	var claims []Claim
	for _, c := range refs {
		claim := Claim{Task: &record.Task{ID: c.TaskID, Token: c.Token}, Token: c.Token, Live: s.lives(c)}
		if t := s.find(c.TaskID); t != nil {
			claim.Task = s.answer(t)
		}
		claims = append(claims, claim)
	}
	return claims
}

func (s *model) lives(c record.ClaimRef) bool {
	t := s.find(c.TaskID)
	return t != nil && t.Status == record.StatusClaimed && t.Token == c.Token
}

func (s *model) claimNext(c command.ClaimNext, seen *Result) Result {
	if c.RequestID == "" {
		c.RequestID, c.RequestPlace = s.batchRequest, s.batchPlace
	}
	what := c
	what.LeaseMS, what.RequestID, what.RequestPlace = 0, "", 0
	return s.requested(c.RequestID, modelCall{place: c.RequestPlace, worker: c.WorkerID, what: what}, func() Result {
		var r Result
		for len(r.Claims) < int(c.Limit) {
			t := s.choose(c)
			var took uint64
			if len(r.Claims) < len(seen.Claims) {
				took = seen.Claims[len(r.Claims)].Task.ID
			}
			byTurn := t != nil && c.SortBy == command.SortPriority && !c.Ascending && c.MoreAttempts == 0 && s.settings(t.Type).Fair
			switch {
			case byTurn:
				t = s.nextByTurn(c, t, took)
			case t != nil && c.SortBy == command.SortRandom && took != 0:
				t = s.chosen(c, took)
			}
			if t == nil {
				break
			}
			s.beginClaim(t, c.WorkerID, c.LeaseMS)
			if byTurn {
				s.tookTurn(t)
			} else {
				s.settleTurns()
			}
			r.Claims = append(r.Claims, Claim{Task: s.answer(t), Token: t.Token, Live: true})
			for _, o := range s.tasks { // those behind it
				if !c.Runs || s.settings(t.Type).Fair || t.Opts().Group == "" || o.ID <= t.ID || o.Type != t.Type || o.Opts().Group != t.Opts().Group || o.Status == record.StatusBlocked || o.Status >= record.StatusCompleted {
					continue
				}
				if len(r.Claims) == int(c.Limit) || o.Status != record.StatusPending || s.share(ofShare(o)).Paused || s.limitOf(o) != "" {
					break
				}
				s.beginClaim(o, c.WorkerID, c.LeaseMS)
				s.settleTurns()
				r.Claims = append(r.Claims, Claim{Task: s.answer(o), Token: o.Token, Live: true})
			}
		}
		return r
	})
}

// chosen is the task that the machine took at random: one that it may take.
func (s *model) chosen(c command.ClaimNext, id uint64) *record.Task {
	t := s.find(id)
	if t == nil || !s.claimable(c, t) {
		s.fault("%+v took task %d", c, id)
		return s.choose(c)
	}
	return t
}

// choose returns the task that comes first; for random, any.
func (s *model) choose(c command.ClaimNext) *record.Task {
	s.settleTurns()
	var best *record.Task
	for _, t := range s.tasks { // the oldest first
		if !s.claimable(c, t) {
			continue
		}
		better := false
		switch {
		case best == nil:
			better = true
		case c.SortBy == command.SortPriority && c.Ascending:
			better = t.Priority < best.Priority
		case c.SortBy == command.SortPriority:
			better = t.Priority > best.Priority
		default:
			better = !c.Ascending
		}
		if better {
			best = t
		}
	}
	return best
}

// claimable tells whether a claim of the next task may take this one now.
func (s *model) claimable(c command.ClaimNext, t *record.Task) bool {
	listed := c.Types == nil || slices.Contains(c.Types, t.Type)
	left := c.MoreAttempts == 0 || t.MaxAttempts == 0 || int64(t.MaxAttempts)-int64(t.Attempts) > int64(c.MoreAttempts)
	return listed && left && s.ready(t) && !s.settings(t.Type).Paused && !s.share(ofShare(t)).Paused && s.limitOf(t) == ""
}

// ready tells whether the task is pending and no other of its group holds it
// back: one that is claimed, or an older one that has not ended.
func (s *model) ready(t *record.Task) bool {
	if t.Status != record.StatusPending {
		return false
	}
	group := t.Opts().Group
	for _, o := range s.tasks {
		if group == "" || o == t || o.Type != t.Type || o.Opts().Group != group {
			continue
		}
		if o.Status == record.StatusClaimed || o.ID < t.ID && o.Status < record.StatusCompleted && o.Status != record.StatusBlocked {
			return false
		}
	}
	return true
}

// modelType is a type that has settings.
type modelType struct {
	name string
	record.TypeSettings
	// What the rate limit lets be claimed, in billionths, as of at.
	bucket *big.Int
	at     int64
	move   *record.Move // the last one
}

const oneClaim9 = 1_000_000_000 // in billionths

// settings returns the type's, all at their defaults if it has none.
func (s *model) settings(name string) record.TypeSettings {
	if x := s.typeRecord(name); x != nil {
		return x.TypeSettings
	}
	return record.TypeSettings{}
}

func (s *model) typeRecord(name string) *modelType {
	for _, x := range s.types {
		if x.name == name {
			return x
		}
	}
	return nil
}

// full returns the capacity of the rate's bucket: one second's worth, and at least one
// claim.
func full(rate int64) *big.Int {
	second := new(big.Int).Mul(big.NewInt(rate), big.NewInt(1000)) // millionths in a second are billionths in a millisecond
	if one := big.NewInt(oneClaim9); second.Cmp(one) < 0 {
		return one
	}
	return second
}

// fill lets in what has come since the bucket was looked at.
func (x *modelType) fill(now int64) {
	if x.RateLimit == 0 {
		return
	}
	came := new(big.Int).Mul(big.NewInt(now-x.at), big.NewInt(x.RateLimit))
	x.bucket, x.at = came.Add(came, x.bucket), now
	if most := full(x.RateLimit); x.bucket.Cmp(most) > 0 {
		x.bucket = most
	}
}

// limitOf tells which limit keeps the task from being claimed, "" if none does.
func (s *model) limitOf(t *record.Task) Reason {
	x := s.typeRecord(t.Type)
	if x == nil {
		x = &modelType{}
	}
	x.fill(s.t)
	switch {
	case x.MaxClaimed != 0 && s.claimedOf(t.Type) >= int(x.MaxClaimed):
		return ReasonLimitReached
	case x.RateLimit != 0 && x.bucket.Cmp(big.NewInt(oneClaim9)) < 0:
		return ReasonRateLimited
	case s.slotsOf(ofShare(t)) <= 0:
		return ReasonShareLimitReached
	case s.claimsIn(ofShare(t), s.t) < 1:
		return ReasonShareRateLimited
	}
	return ""
}

// holdersOf has the claims of tasks of the type with the share key.
func (s *model) holdersOf(name, key string) (holders []Holder) {
	for _, t := range s.tasks {
		if t.Type == name && t.Opts().ShareKey == key && t.Status == record.StatusClaimed {
			holders = append(holders, Holder{t.ID, t.WorkerID})
		}
	}
	return holders
}

// claimedOf counts the claims of tasks of the type.
func (s *model) claimedOf(name string) (claimed int) {
	for _, t := range s.tasks {
		if t.Type == name && t.Status == record.StatusClaimed {
			claimed++
		}
	}
	return claimed
}

// heldBack tells why a task that is neither claimed nor ended cannot be claimed
// by its id, "" if it can.
func (s *model) heldBack(t *record.Task) Reason {
	switch {
	case t.Status != record.StatusPending:
		return map[record.Status]Reason{record.StatusScheduled: "scheduled", record.StatusBlocked: "blocked", record.StatusRunning: "running"}[t.Status]
	case !s.ready(t):
		return ReasonGroupBehind
	}
	return s.limitOf(t)
}

func (s *model) claimTask(c command.ClaimTask) Result {
	what := c
	what.LeaseMS, what.RequestID = 0, ""
	return s.requested(c.RequestID, modelCall{worker: c.WorkerID, what: what}, func() Result { return s.claimThis(c) })
}

func (s *model) claimThis(c command.ClaimTask) Result {
	t := s.find(c.ID)
	var r Result
	switch {
	case t == nil:
		return Result{Code: CodeTaskNotFound}
	case t.Status >= record.StatusCompleted:
		return s.refuse(s.endedCode(t), t)
	case t.Status == record.StatusClaimed && t.WorkerID != c.WorkerID:
		return s.refuse(CodeTaskAlreadyClaimed, t)
	case t.Status == record.StatusClaimed:
		s.lengthen(t, c.LeaseMS)
		r.Repeated = true
	case s.heldBack(t) != "":
		r = s.refuse(CodeTaskNotClaimable, t)
		r.Reason = s.heldBack(t)
		return r
	default:
		s.beginClaim(t, c.WorkerID, c.LeaseMS)
	}
	r.Task = s.answer(t)
	r.Claims = []Claim{{Task: s.answer(t), Token: t.Token, Live: true}}
	return r
}

func (s *model) beginClaim(t *record.Task, worker string, lease int64) {
	for _, l := range []int64{t.LeaseMS, s.inForce(t.Type).LeaseMS, 30_000} {
		if lease == 0 {
			lease = l
		}
	}
	s.tokens++
	t.Status, t.WorkerID, t.Token, t.ClaimedAt, t.UpdatedAt = record.StatusClaimed, worker, s.tokens, s.t, s.t
	t.LeaseSeq, t.ClaimLeaseMS, t.LeaseEndU = 1, lease, s.u+lease
	t.Attempts++
	if x := s.typeRecord(t.Type); x != nil && x.RateLimit != 0 {
		x.fill(s.t)
		x.bucket.Sub(x.bucket, big.NewInt(oneClaim9))
	}
	s.spend(ofShare(t))
	s.begun = append(s.begun, command.Lease{TaskID: t.ID, Token: t.Token, Seq: 1, EndU: t.LeaseEndU})
	s.tell(event.Claimed, t, t, "")
}

func (s *model) lengthen(t *record.Task, asked int64) {
	lease := asked
	if lease == 0 {
		lease = t.ClaimLeaseMS
	}
	if s.u+lease > t.LeaseEndU {
		t.LeaseEndU, t.ClaimLeaseMS = s.u+lease, lease
	}
	t.LeaseSeq++
	t.UpdatedAt = s.t
}

// setType changes the settings that are named.
func (s *model) setType(c command.SetType) Result {
	x := s.typeRecord(c.Type)
	if x == nil {
		x = &modelType{name: c.Type}
		s.types = append(s.types, x)
	}
	x.fill(s.t)
	if c.IfQueue && x.Queue != c.Queue {
		view := s.typeView(c.Type)
		s.types = slices.DeleteFunc(s.types, func(x *modelType) bool { return cmp.Equal(x.TypeSettings, record.TypeSettings{}) })
		return Result{Code: CodeInvalidRequest, Type: &view}
	}
	was, before := x.TypeSettings, x.RateLimit
	to := c.Settings
	if c.Set&record.TypeDelay != 0 {
		x.DelayMS = to.DelayMS
	}
	if c.Set&record.TypeDeadLetter != 0 {
		x.DeadLetter, x.DeadLetterAfter = to.DeadLetter, to.DeadLetterAfter
	}
	if c.Set&record.TypeQueue != 0 {
		x.Queue = to.Queue
	}
	if c.Set&record.TypePaused != 0 {
		x.Paused = to.Paused
	}
	if c.Set&record.TypeMaxClaimed != 0 {
		x.MaxClaimed = to.MaxClaimed
	}
	if c.Set&record.TypeFair != 0 {
		x.Fair = to.Fair
	}
	if c.Set&record.TypeMaxClaimedPerKey != 0 {
		x.MaxClaimedPerKey = to.MaxClaimedPerKey
	}
	if c.Set&record.TypeRateLimitPerKey != 0 {
		s.changeRates(func() { x.RateLimitPerKey = to.RateLimitPerKey })
	}
	if c.Set&record.TypeRateLimit != 0 {
		x.RateLimit = to.RateLimit
	}
	setDefaultsOf(&x.TypeSettings, c.Set, to)
	if x.RateLimit != 0 {
		x.at = s.t
		if most := full(x.RateLimit); before == 0 || x.bucket.Cmp(most) > 0 {
			x.bucket = most
		}
	}
	if !cmp.Equal(was, x.TypeSettings) {
		s.tell(event.TypeChanged, nil, nil, by(c.Type, c.By))
	}
	view := s.typeView(c.Type)
	s.types = slices.DeleteFunc(s.types, func(x *modelType) bool { return cmp.Equal(x.TypeSettings, record.TypeSettings{}) })
	return Result{Type: &view}
}

func (s *model) typeView(name string) TypeView {
	v := TypeView{Type: name, Settings: s.settings(name)}
	if x := s.typeRecord(name); x != nil && x.move != nil {
		v.Move = new(*x.move)
	}
	for _, t := range s.tasks {
		if t.Type != name {
			continue
		}
		v.Counts[t.Status]++
		if t.Status == record.StatusPending && v.Counts[record.StatusPending] == 1 { // the oldest
			v.OldestPendingAgeMS = max(0, s.t-t.CreatedAt)
			v.OldestWaitMS = max(0, s.t-t.UpdatedAt)
			v.OldestPending = t.ID
		}
	}
	return v
}

// setDefaultsOf changes those defaults that are named.
func setDefaultsOf(x *record.TypeSettings, set record.TypeFields, to record.TypeSettings) {
	if set&record.TypeLease != 0 {
		x.LeaseMS = to.LeaseMS
	}
	if set&record.TypeMaxAttempts != 0 {
		x.LimitSet, x.MaxAttempts = to.LimitSet, to.MaxAttempts
	}
	if set&record.TypeBackoff != 0 {
		x.Backoff = to.Backoff
	}
	if set&record.TypeRetention != 0 {
		x.RetentionMS = to.RetentionMS
	}
}

// setDefaults changes the server's defaults.
func (s *model) setDefaults(c command.SetDefaults) Result {
	was := s.defaults
	x := s.defaults.Settings()
	setDefaultsOf(&x, c.Set, c.Defaults.Settings())
	s.defaults = record.DefaultsOf(&x)
	if !cmp.Equal(was, s.defaults) {
		message := ""
		if c.By != "" {
			message = "by " + c.By
		}
		s.tell(event.DefaultsChanged, nil, nil, message)
	}
	return Result{Defaults: new(s.defaultsInForce())}
}

// defaultsInForce returns the values for a task of an unknown type.
func (s *model) defaultsInForce() InForce {
	d := s.defaults
	f := InForce{MaxAttempts: 3, LeaseMS: 30_000, Backoff: d.Backoff, RetentionMS: dayMS, FailedRetentionMS: 14 * dayMS}
	if d.LimitSet {
		f.MaxAttempts = d.MaxAttempts
	}
	if d.LeaseMS != 0 {
		f.LeaseMS = d.LeaseMS
	}
	if d.RetentionMS != 0 {
		f.RetentionMS, f.FailedRetentionMS = d.RetentionMS, d.RetentionMS
	}
	return f
}

// inForce returns the type's settings, with the server's defaults where they are not set.
func (s *model) inForce(name string) record.TypeSettings {
	x := s.settings(name)
	if x.LeaseMS == 0 {
		x.LeaseMS = s.defaults.LeaseMS
	}
	if !x.LimitSet {
		x.LimitSet, x.MaxAttempts = s.defaults.LimitSet, s.defaults.MaxAttempts
	}
	if x.Backoff == nil {
		x.Backoff = s.defaults.Backoff
	}
	if x.RetentionMS == 0 {
		x.RetentionMS = s.defaults.RetentionMS
	}
	return x
}
