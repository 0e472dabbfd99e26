// Package witness holds the answers of a run to the log indexes that they
// carry. Package check trusts no index; here the index is the claim to be
// proven: if the answers are those of one log that was applied in order, then
// ordering the calls by index must explain all of them.
//
// It says:
//
//   - An answer has an index, and indexes keep real time: an answer that came
//     before another call was made has no higher index than that call's answer,
//     and a lower one if that call was a command in the log.
//   - For each task, an order of its calls that keeps to the indexes explains all
//     its answers, reads that were allowed to be stale among them: a state that
//     is labelled with an index is the state at that index.
//   - A claim took the first of the tasks that it could take, and "no task" was
//     answered only when there was none.
//     Parents and steps are left out of this: other calls than their own end them
//     and bring them back; so are tasks with a delay, and those that somebody may have cancelled. A task of a group, or of a type with max_claimed, may be passed by; a claim
//     that waited and got nothing may have left a task to another that waits.
//   - Lists leave out nothing that they should have.
//   - Ids grow with the log, and the first answer to a key or a claim_request_id
//     comes before its repeats.
//
// What no answer names has no index: ends of leases, and commands of unknown
// outcome. So all this is said of what is certain alone: between two answers
// that show a task pending with the same count of attempts, it was pending, for
// nothing takes a task without counting an attempt. Commands of one entry have
// one index: their order within it is searched for (per task), or it is asked
// whether there can be any (claims).
package witness
