// Package neighbours has those who live beside the callers of a run: heavy readers, who ask the
// costly reads again and again over many connections, and tenants, whose keys are for some task
// types alone and whose answers are searched for what others have sent. What tenants change goes
// into the history as any caller's does; what is wrong with an answer is an event of it.
package neighbours
