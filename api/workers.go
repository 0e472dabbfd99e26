package api

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/presence"
	"github.com/claimq/claimq/fsm"
)

const (
	// workersMax bounds the workers of an answer to the first ones by id.
	workersMax = 10_000
	// workersPage is the number read under one lock.
	workersPage = 1_000
	// workerBytes bounds the memory for a worker while it is found and in an answer: its name and the ids of 100
	// tasks.
	workerBytes = 3 << 10
)

// Workers answers GET /api/workers.
func Workers(r *exchange.Request) {
	holders, now, ok := holders(r)
	if !ok {
		return
	}
	r.Send(fasthttp.StatusOK, appendWorkers(r.Body(), atWork(r, holders, now)))
}

// holders returns the workers that hold claims, at most workersMax. Later pages are as of a later index. ok is false
// if the request was already answered.
func holders(r *exchange.Request) (holders []fsm.WorkerView, now fsm.Stamp, ok bool) {
	var page []fsm.WorkerView
	after, index := "", uint64(0)
	look := func(m *fsm.Machine, stamp fsm.Stamp) {
		page = m.Workers(after, min(workersPage, workersMax-len(holders)))
		now, index = stamp, m.Index()
	}
	for ok = r.Read(look); ok && len(page) > 0 && len(holders) < workersMax; ok = r.RoomFor(len(holders)*workerBytes) && r.ReadOn(index, look) {
		holders = append(holders, page...)
		after = holders[len(holders)-1].WorkerID
	}
	return holders, now, ok
}

// atWork returns the workers that hold claims or made a call lately, sorted by id, at most workersMax. SeenT is the
// later of the times that the state and this node know.
func atWork(r *exchange.Request, holders []fsm.WorkerView, now fsm.Stamp) []fsm.WorkerView {
	heard := r.Server.AtWork.Workers(r.Asks)
	for i := range holders {
		w := &holders[i]
		if agoMS, ok := heard[w.WorkerID]; ok {
			w.SeenT = max(w.SeenT, now.T-agoMS)
			delete(heard, w.WorkerID)
		}
	}
	for id, agoMS := range heard {
		if agoMS <= presence.HeardWindow.Milliseconds() {
			holders = append(holders, fsm.WorkerView{WorkerID: id, SeenT: now.T - agoMS})
		}
	}
	slices.SortFunc(holders, func(a, b fsm.WorkerView) int { return strings.Compare(a.WorkerID, b.WorkerID) })
	return holders[:min(len(holders), workersMax)]
}

func appendWorkers(b []byte, workers []fsm.WorkerView) []byte {
	b = jsonout.List(b, `{"success":true,"workers":`, len(workers), func(b []byte, i int) []byte {
		w := &workers[i]
		b = jsonout.StringField(b, `{"worker_id":`, w.WorkerID)
		b = jsonout.IntField(b, `,"claimed":`, int64(w.Claimed))
		b = jsonout.Uints(b, `,"task_ids":`, w.TaskIDs)
		return append(jsonout.TimeField(b, `,"last_seen_at":`, w.SeenT), '}')
	})
	return append(b, '}')
}
