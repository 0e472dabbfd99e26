package api

import "github.com/claimq/claimq/api/wire"

// why answers GET /api/tasks/{id}/why.
func (r *request) why() { r.refuse(refuse(wire.CodeNotFound)) }
