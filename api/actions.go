package api

import "github.com/claimq/claimq/api/wire"

// actions answers POST /api/tasks/actions.
func (r *request) actions() { r.refuse(refuse(wire.CodeNotFound)) }
