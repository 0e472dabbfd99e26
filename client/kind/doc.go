// Package kind ties a task type to the Go types of its parameters and its result, so that producers, workers and
// programs that wait for the result use the same ones:
//
//	type Invoice struct {
//		Order string `json:"order" claimq:"unique"`
//		Lang  string `json:"lang"`
//	}
//
//	var Invoices = kind.New[Invoice, Receipt]("invoice", func(t *client.Task) { t.MaxAttempts = 5 })
//
//	s, err := Invoices.Submit(ctx, c, Invoice{Order: "17"})
//
//	Invoices.Handle(w, func(ctx context.Context, job *client.Job[Invoice]) (Receipt, error) {
//		return write(ctx, job.Params)
//	})
//
//	receipt, err := Invoices.Result(ctx, c, s.ID) // waits for it
//
// A kind whose tasks have no result uses None for it.
//
// # Unique by fields
//
// Fields with the tag claimq:"unique" make up the task's idempotency key: the name of the type and the JSON of these
// fields. If two tasks of a kind have the same JSON in these fields, they have the same key and the second one is not
// submitted: Submit returns the first, with Created false, and with Differs true if other fields differ. The key is
// taken while the task exists, or with Task.Unique = client.UniqueActive until it ends. Without such a tag every
// submit makes a new task.
//
// # Changing a kind
//
// Parameters are encoded and decoded with encoding/json: a field that the worker does not know is ignored, and one
// that the task does not have is zero. Fields may therefore be added and removed while tasks wait. If a task does not
// decode because the type of a field has changed, it fails for good without a call of the handler, because another
// attempt of the same program would fail, too. It is kept with the reason, 14 days by default, and claimq retry can
// revive it once there is a worker that can read it. To change a field's type, use a new name for it, and deploy
// workers that know it before the producers.
//
// The keys of unique tasks depend on the fields' names in JSON and their order in the struct: renaming, moving,
// adding or removing a tagged field changes the keys.
package kind
