package index

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

// queued is a task as the test knows it.
type queued struct {
	id       uint64
	priority int32
}

// check compares the levels with the tasks that there are. It returns what is wrong.
func (q *queue) check(tasks []queued) error {
	n := 0
	var wrong error
	q.eachLevel(func(l *level) {
		n += l.ids.count
		for _, t := range tasks {
			if (t.priority == l.priority) != l.ids.contains(t.id) {
				wrong = fmt.Errorf("task %d has priority %d, level %d says otherwise", t.id, t.priority, l.priority)
			}
		}
	})
	if wrong != nil {
		return wrong
	}
	if n != len(tasks) || q.len() != n || (q.all != nil) != (q.levelCount() > 1) || q.all != nil && q.all.count != n {
		return fmt.Errorf("%d tasks in %d levels, want %d", n, q.levelCount(), len(tasks))
	}
	return nil
}

// TestQueue holds a queue against a list: tasks of few priorities come in order or come
// back, and leave from anywhere.
func TestQueue(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(rt *rapid.T) {
		q := &queue{}
		var tasks []queued // by id
		next := uint64(1)
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			if len(tasks) > 0 && rapid.IntRange(0, 2).Draw(rt, "remove") == 0 {
				at := rapid.IntRange(0, len(tasks)-1).Draw(rt, "which")
				q.remove(tasks[at].priority, tasks[at].id)
				tasks = slices.Delete(tasks, at, at+1)
			} else {
				task := queued{next, rapid.Int32Range(-1, 1).Draw(rt, "priority")}
				next += 2
				if task.id > 20 && rapid.IntRange(0, 3).Draw(rt, "comes back") == 0 {
					task.id -= 19 // even, so no other task has it
				}
				at, _ := slices.BinarySearchFunc(tasks, task.id, func(t queued, id uint64) int { return cmp.Compare(t.id, id) })
				tasks = slices.Insert(tasks, at, task)
				q.add(task.priority, task.id)
			}
			if err := q.check(tasks); err != nil {
				rt.Fatal(err)
			}
			below := map[int32]int{}
			want := noRanks
			for k, task := range tasks {
				if got := q.at(k); got != task.id {
					rt.Fatalf("task %d comes %d-th, want %d", got, k, task.id)
				}
				if got := q.below(task.priority, task.id); got != below[task.priority] {
					rt.Fatalf("%d tasks of priority %d are below %d, want %d", got, task.priority, task.id, below[task.priority])
				}
				below[task.priority]++
				for o := range orders {
					want[o] = want[o].or(rankOf(o, task.priority, task.id))
				}
			}
			if got := q.top(); got != want {
				rt.Fatalf("the first are %v, want %v", got, want)
			}
		}
	})
}
