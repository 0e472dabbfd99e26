package api

import "github.com/claimq/claimq/api/wire"

// schedules answers GET /api/schedules.
func (r *request) schedules() { r.refuse(refuse(wire.CodeNotFound)) }

// schedule answers GET /api/schedules/{name}.
func (r *request) schedule() { r.refuse(refuse(wire.CodeNotFound)) }

// setSchedule answers PUT /api/schedules/{name}.
func (r *request) setSchedule() { r.refuse(refuse(wire.CodeNotFound)) }

// deleteSchedule answers DELETE /api/schedules/{name}.
func (r *request) deleteSchedule() { r.refuse(refuse(wire.CodeNotFound)) }
