package redlock

import (
	"fmt"
	"time"
)

// Defaults of [Options].
const (
	DefaultNodeTimeout    = 50 * time.Millisecond // the least, where it follows the round trip
	DefaultConnectTimeout = 2 * time.Second
	DefaultDriftFactor    = 0.01
	DefaultDriftMargin    = 2 * time.Millisecond
	DefaultRetries        = 3
	DefaultRetryDelay     = 200 * time.Millisecond
)

func (o Options) withDefaults() (Options, error) {
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.DriftFactor == 0 {
		o.DriftFactor = DefaultDriftFactor
	}
	if o.DriftMargin == 0 {
		o.DriftMargin = DefaultDriftMargin
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = DefaultRetryDelay
	}
	switch {
	case o.NodeTimeout < 0:
		return o, fmt.Errorf("node timeout %s is negative", o.NodeTimeout)
	case o.ConnectTimeout < 0:
		return o, fmt.Errorf("connect timeout %s is negative", o.ConnectTimeout)
	case !(o.DriftFactor >= 0 && o.DriftFactor < 1):
		return o, fmt.Errorf("drift factor %g is not in [0, 1)", o.DriftFactor)
	case o.DriftMargin < 0:
		return o, fmt.Errorf("drift margin %s is negative", o.DriftMargin)
	case o.RetryDelay < 0:
		return o, fmt.Errorf("retry delay %s is negative", o.RetryDelay)
	case len(o.Owner) > mostOwner || printableASCII(o.Owner, mostOwner) != o.Owner:
		return o, fmt.Errorf("owner %s: at most %d bytes of printable ASCII without blanks", quote(o.Owner), mostOwner)
	}
	return o, nil
}
