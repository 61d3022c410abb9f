// Command past judges the record: what it says of grants, of moments and of its own gaps is
// compared with a tape of every command on five servers, which the program does not know,
// while the recorder is killed again and again. See scripts/judge-record, which builds and
// runs it. It exits with 0 if the record was right, 1 if it was wrong, and 2 if it could not
// be judged.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"redlockctl/base/sleep"
	"redlockctl/internal/lab"
	"redlockctl/internal/record"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge-record:", err)
		code = 2
	}
	os.Exit(code)
}

// judge is a run.
type judge struct {
	program   string
	dir       string
	servers   lab.Servers
	dice      *rand.Rand
	last      time.Duration
	clients   int
	kills     int
	questions int

	tape  tape
	away  []span // when no recorder ran
	asked []question
}

type span struct{ from, to time.Time }

func run() (int, error) {
	j := &judge{}
	var server string
	var seed uint64
	flag.StringVar(&j.program, "redlockctl", "redlockctl", "the `program` that records")
	flag.StringVar(&server, "redis-server", "redis-server", "the server's program")
	flag.DurationVar(&j.last, "for", 2*time.Minute, "how long")
	flag.IntVar(&j.clients, "clients", 60, "how many `clients`, each with a lock of its own")
	flag.IntVar(&j.kills, "kills", 4, "how often the recorder is killed")
	flag.IntVar(&j.questions, "questions", 1000, "how many questions are asked before and after kills")
	flag.Uint64Var(&seed, "seed", uint64(time.Now().UnixNano()), "of all choices (default: the time)")
	flag.Parse()
	logging.Disable()
	j.dice = rand.New(rand.NewPCG(seed, 1))
	fmt.Printf("seed %d\n", seed)
	var err error
	if j.program, err = exec.LookPath(j.program); err != nil {
		return 2, err
	}
	if server, err = exec.LookPath(server); err != nil {
		return 2, err
	}
	if j.dir, err = os.MkdirTemp("", "redlockctl-past-"); err != nil {
		return 2, err
	}
	defer os.RemoveAll(j.dir)
	if j.servers, err = lab.StartServers(server, 5); err != nil {
		return 2, err
	}
	defer j.servers.Close()
	return j.play()
}

// play runs clients and recorders, and judges then.
func (j *judge) play() (int, error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	for i, s := range j.servers {
		if err := j.tape.follow(ctx, &all, i, s.Node().Addr()); err != nil {
			return 2, err
		}
	}
	recorder, err := j.start()
	if err != nil {
		return 2, err
	}
	if err := j.recorded(recorder, time.Now()); err != nil {
		return 2, err
	}
	began := time.Now()
	clients, stopClients := context.WithCancel(ctx)
	defer stopClients()
	for i := range j.clients {
		all.Go(func() { j.client(clients, i, rand.New(rand.NewPCG(uint64(i), 7))) })
	}
	for k := range j.kills {
		_ = sleep.For(ctx, time.Until(began.Add(j.last*time.Duration(k+1)/time.Duration(j.kills+1))))
		if err := j.ask(j.questions / j.kills); err != nil {
			return 2, err
		}
		_ = recorder.Process.Kill()
		_ = recorder.Wait()
		killed := time.Now()
		_ = sleep.For(ctx, time.Duration(j.dice.IntN(3000))*time.Millisecond)
		if recorder, err = j.start(); err != nil {
			return 2, err
		}
		if err := j.recorded(recorder, time.Now()); err != nil {
			return 2, err
		}
		j.away = append(j.away, span{killed, time.Now()})
	}
	_ = sleep.For(ctx, time.Until(began.Add(j.last)))
	stopClients()
	_ = sleep.For(ctx, 3*time.Second) // until all is written
	stop()
	all.Wait()
	_ = recorder.Process.Kill()
	_ = recorder.Wait()
	return j.verdict(began)
}

func (j *judge) path() string { return filepath.Join(j.dir, "record", "judged.db") }

// start starts a recorder.
func (j *judge) start() (*exec.Cmd, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[cluster]\nname = \"judged\"\nmax_ttl = %q\nlock_patterns = [\"job:*\"]\n[guard]\nstate_dir = %q\n[audit]\npath = %q\n[record]\ndir = %q\n",
		maxTTL, j.dir+"/guard", j.dir+"/audit.log", j.dir+"/record")
	for i, s := range j.servers {
		fmt.Fprintf(&b, "[[nodes]]\nname = \"n%d\"\naddr = %q\n", i+1, s.Node().Addr())
	}
	config := filepath.Join(j.dir, "config.toml")
	if err := os.WriteFile(config, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(j.dir, "guard.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(j.program, "guard", "--config", config, "--watch-locks")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "HOME="+j.dir, "XDG_STATE_HOME="+j.dir)
	return cmd, cmd.Start()
}

// recorded waits until locks are recorded after a time.
func (j *judge) recorded(recorder *exec.Cmd, after time.Time) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		r, err := record.OpenReader(j.path(), "judged")
		if err != nil {
			continue
		}
		c, err := r.Coverage(record.Span{Since: after, Until: time.Now()})
		_ = r.Close()
		if err == nil && len(c.Locks) > 0 {
			return nil
		}
	}
	log, _ := os.ReadFile(filepath.Join(j.dir, "guard.log"))
	return fmt.Errorf("nothing is recorded after a minute (process %d): %s", recorder.Process.Pid, log)
}
