package minreplicas

import (
	"fmt"
	"math"
	"strconv"
)

// Values of min-replicas-to-write that are a fence, while min-replicas-max-lag is above 0: 0
// switches the check off.
const (
	FenceUp     = math.MaxInt32     // 2147483647: fenced by the boot fence or a guard
	FenceCordon = math.MaxInt32 - 1 // 2147483646: cordoned by an operator; no guard removes it
	FenceNone   = 0
)

// FenceLag is the server's own default of min-replicas-max-lag, in seconds.
const FenceLag = 10

const (
	Param    = "min-replicas-to-write"
	LagParam = "min-replicas-max-lag"
)

// Params are the two parameters of a server that make the fence.
type Params struct {
	MinReplicas int64 // min-replicas-to-write
	MaxLag      int64 // min-replicas-max-lag, seconds; 0 switches the check off
}

// Fenced reports whether a server with these parameters refuses all writes because of a guard's
// fence. Any other number is the operator's own setting for replicas, and no fence: with a replica
// it lets writes through.
func (p Params) Fenced() bool { return p.MinReplicas == FenceUp && p.MaxLag > 0 }

func (p Params) Cordoned() bool { return p.MinReplicas == FenceCordon && p.MaxLag > 0 }

// String returns the parameters as they were read back.
func (p Params) String() string {
	return fmt.Sprintf("read back %s %d, %s %d", Param, p.MinReplicas, LagParam, p.MaxLag)
}

func (p Params) Are(value int64) bool {
	if value == FenceUp || value == FenceCordon {
		return p.MinReplicas == value && p.MaxLag > 0
	}
	return p.MinReplicas == value
}

// FenceLines are the two lines of a configuration file that start a server fenced, and FenceArgs
// the same as words of its command line.
var (
	FenceLines = []string{fmt.Sprintf("%s %d", Param, FenceUp), fmt.Sprintf("%s %d", LagParam, FenceLag)}
	FenceArgs  = []string{"--" + Param, strconv.Itoa(FenceUp), "--" + LagParam, strconv.Itoa(FenceLag)}
)
