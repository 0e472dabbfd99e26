package api

import "github.com/claimq/claimq/api/wire"

// reload answers POST /api/reload.
func (r *request) reload() { r.refuse(refuse(wire.CodeNotFound)) }
