package api

import "github.com/claimq/claimq/api/wire"

// takeSnapshot answers POST /api/snapshots.
func (r *request) takeSnapshot() { r.refuse(refuse(wire.CodeNotFound)) }

// saveSnapshot answers GET /api/snapshots/latest.
func (r *request) saveSnapshot() { r.refuse(refuse(wire.CodeNotFound)) }

// restore answers POST /api/restore.
func (r *request) restore() { r.refuse(refuse(wire.CodeNotFound)) }
