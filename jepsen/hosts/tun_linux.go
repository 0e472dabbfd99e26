package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// cableDevice is the name of each host's end of the cable.
	cableDevice = "eth0"
	// sendQueueLen is the number of packets that may wait in a host for the switch.
	sendQueueLen = 5000
)

// plug creates the cable of the host with that address and returns the outer end. The
// calling thread must be in the host's namespace.
func plug(addr string) (cable *os.File, err error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	defer func() { err = errors.Join(err, unix.Close(socket)) }()
	for _, set := range []struct {
		fd      int
		device  string
		request uint
		value   any // uint16, uint32, or the text of an address
	}{
		{socket, "lo", unix.SIOCSIFFLAGS, uint16(unix.IFF_UP)},
		{fd, cableDevice, unix.TUNSETIFF, uint16(unix.IFF_TUN | unix.IFF_NO_PI)},
		{socket, cableDevice, unix.SIOCSIFMTU, uint32(mtu)},
		{socket, cableDevice, unix.SIOCSIFTXQLEN, uint32(sendQueueLen)},
		{socket, cableDevice, unix.SIOCSIFADDR, addr},
		{socket, cableDevice, unix.SIOCSIFNETMASK, "255.255.255.0"},
		{socket, cableDevice, unix.SIOCSIFFLAGS, uint16(unix.IFF_UP)},
	} {
		if err := ioctl(set.fd, set.device, set.request, set.value); err != nil {
			return nil, errors.Join(fmt.Errorf("set %s up, request %#x: %w", set.device, set.request, err), unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), cableDevice), nil
}

// ioctl makes a request about a network device.
func ioctl(fd int, device string, request uint, value any) error {
	r, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	switch value := value.(type) {
	case uint16:
		r.SetUint16(value)
	case uint32:
		r.SetUint32(value)
	case string:
		addr := netip.MustParseAddr(value).As4()
		if err := r.SetInet4Addr(addr[:]); err != nil {
			return err
		}
	}
	return unix.IoctlIfreq(fd, request, r)
}
