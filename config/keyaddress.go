package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddress parses an address (192.0.2.7, ::1) or a prefix (10.0.0.0/8). A single address becomes a prefix of its
// full length.
func ParseAddress(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address: it must be as 192.0.2.7 or ::1, or a prefix as 10.0.0.0/8", text)
		}
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is no prefix: it must be as 10.0.0.0/8 or 2001:db8::/32", text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is a prefix of IPv4 written as one of IPv6: write it as 10.0.0.0/8", text)
	case prefix.Masked() != prefix:
		return netip.Prefix{}, fmt.Errorf("%q has bits behind its prefix: %s is probably meant", text, prefix.Masked())
	}
	return prefix, nil
}

// FormatAddress formats a prefix for ParseAddress, a single address without its length.
func FormatAddress(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// addresses parses the addresses of a key.
func (f *fileReader) addresses(texts []string, at string) []netip.Prefix {
	var all []netip.Prefix
	for i, text := range texts {
		p, err := ParseAddress(text)
		if err != nil {
			f.mistake("%s: addresses[%d] %w", at, i, err)
			continue
		}
		all = append(all, p)
	}
	return all
}
