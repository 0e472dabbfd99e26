// Package kind ties a task type to the Go types of its parameters and its result, so that
// those who submit, those who work and those who wait for it cannot differ:
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
// A kind whose tasks have no result has None in its place.
//
// # Unique by fields
//
// Fields with the tag claimq:"unique" make the task's idempotency key: the type's name and
// the JSON of these fields. Two tasks of a kind whose tagged fields have the same JSON have
// the same key, and the second is not submitted: Submit returns the first, with Created
// false, and Differs true if the fields without the tag are not the same. The key is
// taken while the task exists, or with Task.Unique = client.UniqueActive until it ends.
// Without a tag each submit is a task of its own.
//
// # Changing a kind
//
// Parameters travel as JSON of encoding/json, and are decoded as that does it: a field that
// the worker does not know is ignored, one that the task does not have is zero. So fields
// may be added and removed while tasks wait. What does not decode, since a field
// has another type now, fails its task for good, without a call of the handler: another
// attempt of the same program would end the same, and use up the attempts. The task stays
// among the failed ones with the reason, 14 days by default, and once there is a
// worker that can read it, claimq retry takes it up again. To change a field's type, give
// the new one another name, and deploy the workers that know it before the producers.
//
// The keys of unique tasks are made of the fields' names in JSON and their order in the
// struct: renaming a tagged field in JSON, or moving, adding or removing one, makes other keys.
package kind
