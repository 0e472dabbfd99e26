package api

import "strings"

// role is what an API key may do: it is the place of its bit in a set of roles.
type role uint8

const (
	roleNone role = iota // of a request: the server is open, so it may do everything
	roleReader
	roleProducer
	roleWorker
	roleOperator
)

var roleNames = [...]string{
	roleReader: "reader", roleProducer: "producer", roleWorker: "worker", roleOperator: "operator",
}

const rolesAllowed = "reader, producer, worker or operator"

func parseRole(name string) (role, bool) {
	for r := roleReader; r <= roleOperator; r++ {
		if roleNames[r] == name {
			return r, true
		}
	}
	return roleNone, false
}

// roles is a set of roles.
type roles uint8

const (
	// anybody needs no key at all.
	anybody   roles = 1 << roleNone
	producers roles = 1<<roleProducer | 1<<roleOperator
	workers   roles = 1<<roleWorker | 1<<roleOperator
	operators roles = 1 << roleOperator
	everyRole roles = 1<<roleReader | producers | workers
)

func (rs roles) has(r role) bool { return rs&(1<<r) != 0 }

// names are those of the roles, from the least to the most.
func (rs roles) names() []string {
	var names []string
	for r := roleReader; r <= roleOperator; r++ {
		if rs.has(r) {
			names = append(names, roleNames[r])
		}
	}
	return names
}

// least names the roles that a refusal says are needed: the operator, who may
// do everything, only where nobody else may.
func (rs roles) least() string {
	if rs == operators {
		return roleNames[roleOperator]
	}
	var names []string
	for r := roleReader; r < roleOperator; r++ {
		if rs.has(r) {
			names = append(names, roleNames[r])
		}
	}
	return strings.Join(names, " or ")
}

// callRole is who may make a call, and at what price.
type callRole struct {
	roles roles
	// unlimited says that the call is not counted against a key's rate: a worker
	// that may not extend would lose its lease. That a batch is counted depends
	// on its ops.
	unlimited bool
	// whole says that the call is about all task types at once, so that a key
	// with task_types may not make it. What other calls touch is looked at when
	// they are answered.
	whole bool
}

// callRoles is the one table of who may do what. It is never changed.
var callRoles = [callCount]callRole{
	callNone: {roles: everyRole},

	callSubmit: {roles: producers},
	callRetry:  {roles: producers},
	callCancel: {roles: producers},
	callPatch:  {roles: producers},
	callDelete: {roles: producers},
	callAct:    {roles: producers},

	callClaim:               {roles: workers},
	callClaimTask:           {roles: workers},
	callComplete:            {roles: workers, unlimited: true},
	callFail:                {roles: workers, unlimited: true},
	callExtend:              {roles: workers, unlimited: true},
	callRelease:             {roles: workers, unlimited: true},
	callClaimFinalization:   {roles: workers, unlimited: true},
	callExtendFinalization:  {roles: workers, unlimited: true},
	callReleaseFinalization: {roles: workers, unlimited: true},
	callFinalize:            {roles: workers, unlimited: true},

	callBatch: {roles: producers | workers}, // and each op its own

	callGet:          {roles: everyRole},
	callGetByKey:     {roles: everyRole},
	callList:         {roles: everyRole},
	callWhy:          {roles: everyRole},
	callFinalization: {roles: everyRole, unlimited: true},
	callTaskEvents:   {roles: everyRole},
	callEvents:       {roles: everyRole},
	callTypes:        {roles: everyRole},
	callWorkers:      {roles: everyRole, whole: true},
	callSchedules:    {roles: everyRole},
	callSchedule:     {roles: everyRole},
	callStats:        {roles: everyRole},
	callMetrics:      {roles: everyRole, whole: true},

	callSetType:         {roles: operators},
	callSetSchedule:     {roles: operators},
	callDeleteSchedule:  {roles: operators},
	callCluster:         {roles: operators, whole: true},
	callHashes:          {roles: operators, whole: true},
	callJoinNode:        {roles: operators, whole: true},
	callRemoveNode:      {roles: operators, whole: true},
	callPromoteNode:     {roles: operators, whole: true},
	callDemoteNode:      {roles: operators, whole: true},
	callTransfer:        {roles: operators, whole: true},
	callUpgrade:         {roles: operators, whole: true},
	callSetJoinToken:    {roles: operators, whole: true},
	callRevokeJoinToken: {roles: operators, whole: true},
	callJoinTokens:      {roles: operators, whole: true},
	callTakeSnapshot:    {roles: operators, whole: true},
	callSaveSnapshot:    {roles: operators, whole: true},
	callRestore:         {roles: operators, whole: true},
	callReload:          {roles: operators, whole: true},
	callKeys:            {roles: operators, whole: true},

	callOptions: {roles: anybody},
	callHealth:  {roles: anybody},
	callReady:   {roles: anybody},
	callOpenAPI: {roles: anybody},
}
