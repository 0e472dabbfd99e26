//go:build !linux

package hosts

import (
	"errors"
	"os"
)

// namespace only exists on Linux.
type namespace struct{}

func newNamespace() (*namespace, error) { return nil, errors.ErrUnsupported }

func (ns *namespace) do(func() error) error    { return errors.ErrUnsupported }
func (ns *namespace) visit(func() error) error { return errors.ErrUnsupported }
func (ns *namespace) close()                   {}

func plug(string) (*os.File, error) { return nil, errors.ErrUnsupported }
