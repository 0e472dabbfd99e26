package record

import (
	"math"
	"strings"
	"testing"
)

// What an ended task keeps for a repeat of its Complete does not count for restingMax. It
// is bounded by the follow-ups and claims of one Complete.
func TestRestingTasks_thenIsBesideTheBound(t *testing.T) {
	t.Parallel()
	const (
		most    = 1000 // follow-ups of a Complete, and claims of its next one
		thenMax = 33 << 10
	)
	task := &Task{ID: math.MaxUint64, Status: StatusCompleted, Type: strings.Repeat("t", restingMax), WorkerID: "w", Then: &Then{}}
	alone := len(AppendTask(nil, task))
	for range most {
		task.Then.Submitted = append(task.Then.Submitted, FollowUp{ID: math.MaxUint64, Created: true})
		task.Then.Claims = append(task.Then.Claims, ClaimRef{TaskID: math.MaxUint64, Token: math.MaxUint64})
	}
	if !IsResting(task) {
		t.Error("a task that has much for a repeat does not rest")
	}
	if then := len(AppendTask(nil, task)) - alone; then > thenMax {
		t.Errorf("that takes %d bytes, more than %d", then, thenMax)
	}
	task.Type += "t"
	if IsResting(task) {
		t.Errorf("a task of more than %d bytes rests", restingMax)
	}
}
