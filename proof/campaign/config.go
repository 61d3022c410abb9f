package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"redlockctl/restartguard"
)

// Guarding is who keeps a killed master out of the quorum.
type Guarding uint8

const (
	Inside  Guarding = iota // a guard in this process
	Killed                  // a guard in a process of its own, which is killed all the time
	Delayed                 // nobody: "redlockctl node wait --before-start" runs before each start
	Nothing                 // nobody: the masters start unfenced
)

// Config of a campaign. The zero value of a field means its default.
type Config struct {
	RedisServer string // path of the program; required
	Redlockctl  string // path of the program; required for [Killed] and [Delayed]
	Dir         string // for the files of the servers, the caller's to remove; required
	// Cycles is after how many kills it ends: of masters, or of the guard for
	// [Killed]. It ends before that at the first violation. Default 40.
	Cycles   int
	Guarding Guarding
	ACL      bool // fences are those of an ACL user
	// Early lets masters rejoin before D by evidence; Pattern is where guards look for
	// the locks. Any but the default is wrong, which the campaign must find.
	Early   bool
	Pattern string
	Seed    uint64 // of all choices; the timing is that of the machine
	// MaxTTL is the longest TTL of the clients, which use 5/8 of it and more.
	// Default 400 ms, 200 ms for [Killed], 1 s for Drains, and 4 s for Early: no evidence covers copies
	// that live for less than 2 s.
	MaxTTL time.Duration
	// DelayShare is the part of D that the guard waits: below 1 it waits too
	// short, which the campaign must find. Default 1.
	DelayShare float64
	// Guards is how many guard the masters, each with a memory of its own, and each
	// killed by itself. Default 1.
	Guards int
	// Drains has every second master that is killed cordoned and emptied before, and uncordoned after. Guards
	// inside this process, two by default, have different D, the shorter one far below what is
	// safe, and are cut off from masters all the time.
	Drains bool

	Nodes, Clients, Resources int // default 5, 8 and 3, for Early 12

	// Progress gets a line each so many cycles; nil: none.
	Progress func(line string)
}

func (cfg *Config) defaults() error {
	locks, ttl := 3, 400*time.Millisecond
	switch {
	case cfg.Early:
		locks, ttl = 12, 4*time.Second
	case cfg.Drains:
		ttl = time.Second
	case cfg.Guarding == Killed:
		ttl = 200 * time.Millisecond
	}
	cfg.Cycles = cmp.Or(cfg.Cycles, 40)
	cfg.Nodes = cmp.Or(cfg.Nodes, 5)
	cfg.Clients = cmp.Or(cfg.Clients, 8)
	if cfg.Drains {
		cfg.Guards = cmp.Or(cfg.Guards, 2)
	}
	cfg.Guards = cmp.Or(cfg.Guards, 1)
	cfg.Resources = cmp.Or(cfg.Resources, locks)
	cfg.MaxTTL = cmp.Or(cfg.MaxTTL, ttl)
	cfg.DelayShare = cmp.Or(cfg.DelayShare, 1)
	cfg.Pattern = cmp.Or(cfg.Pattern, prefix+"*")
	switch {
	case cfg.RedisServer == "" || cfg.Dir == "":
		return errors.New("a campaign needs a redis-server and a directory")
	case (cfg.Guarding == Delayed || cfg.Guarding == Killed) && cfg.Redlockctl == "":
		return errors.New("the path of redlockctl is missing")
	case cfg.Guarding == Delayed && (cfg.ACL || cfg.Early || cfg.Guards > 1):
		return errors.New("delayed servers have neither fence nor guard")
	case cfg.Guarding == Nothing && (cfg.Early || cfg.Guards > 1):
		return errors.New("early rejoin and several guards need a guard")
	case cfg.Drains && (cfg.Guarding != Inside || cfg.ACL || cfg.Early):
		return errors.New("drains need guards of this process, and the fence min-replicas")
	case min(cfg.Cycles, cfg.Nodes, cfg.Clients, cfg.Resources, cfg.Guards) < 1:
		return fmt.Errorf("%d cycles, %d nodes, %d clients, %d locks, %d guards: at least 1 of each", cfg.Cycles, cfg.Nodes, cfg.Clients, cfg.Resources, cfg.Guards)
	case cfg.MaxTTL < 50*time.Millisecond:
		return fmt.Errorf("max TTL %s is below 50ms: nothing would be granted", cfg.MaxTTL)
	case !(cfg.DelayShare > 0):
		return fmt.Errorf("share %g of D is not positive", cfg.DelayShare)
	}
	return nil
}

// delay is D.
func (cfg *Config) delay() time.Duration { return restartguard.DefaultDelay(cfg.MaxTTL) }

// waits is for how long a master is kept out: D, or a part of it.
func (cfg *Config) waits() time.Duration { return time.Duration(float64(cfg.delay()) * cfg.DelayShare) }

// waitsOf is that of guard number i: from the second on a fifth, where D differ.
func (cfg *Config) waitsOf(i int) time.Duration {
	if cfg.Drains && i > 0 {
		return cfg.waits() / 5
	}
	return cfg.waits()
}

const (
	// prefix begins the names of the locks.
	prefix = "campaign:"
	// lockUser is the ACL user of the clients.
	lockUser, lockPassword = "locks", "campaign"
	// guardPoll is how often the campaign's guards look at a node.
	guardPoll = 10 * time.Millisecond
	// attemptBound is the longest time that an attempt of the clients may take.
	attemptBound = 300 * time.Millisecond
	// rejoinTime bounds how long the last masters may take to rejoin.
	rejoinTime   = 30 * time.Second
	watchEvery   = 2 * time.Millisecond
	watchTimeout = 2 * time.Second
)

// maxTTLOf is the max TTL of which a delay is D, in whole milliseconds.
func maxTTLOf(delay time.Duration) time.Duration {
	ttl := float64(delay-restartguard.DefaultMargin) / (1 + restartguard.DefaultFactor)
	return max(time.Duration(ttl).Round(time.Millisecond), time.Millisecond)
}
