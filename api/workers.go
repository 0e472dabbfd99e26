package api

import "github.com/claimq/claimq/api/wire"

// workers answers GET /api/workers.
func (r *request) workers() { r.refuse(refuse(wire.CodeNotFound)) }
