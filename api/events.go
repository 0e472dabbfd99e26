package api

import "github.com/claimq/claimq/api/wire"

// events answers GET /api/events.
func (r *request) events() { r.refuse(refuse(wire.CodeNotFound)) }

// taskEvents answers GET /api/tasks/{id}/events.
func (r *request) taskEvents() { r.refuse(refuse(wire.CodeNotFound)) }
