package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"redlockctl/internal/lab"
	"redlockctl/internal/who"
	"redlockctl/redlock"
)

// corpusAnswer is one answer, judged.
type corpusAnswer struct {
	Trap    string
	Method  who.Method
	P       float64
	Right   bool // of an inference
	Sent    int  // connections named as senders of a change
	Strange int  // those of them that are another application's
	Changes int
	Took    time.Duration
	Likely  []corpusGuess
}

type corpusGuess struct {
	P     float64
	Right bool
}

// whoCorpus asks who holds locks in worlds made to mislead, where the truth is known, and
// prints how often the claimed p is right.
func whoCorpus(args []string) error {
	fs := flag.NewFlagSet("who-corpus", flag.ExitOnError)
	server := fs.String("redis-server", "redis-server", "path of redis-server")
	lasts := fs.Duration("for", 15*time.Minute, "how long to ask")
	claims := fs.Int("claims", 0, "end after so many claims")
	asks := fs.Int("asks", 12, "questions at the same time")
	quick := fs.Bool("quick", false, "a minute")
	nodes := fs.Int("nodes", 3, "servers")
	raw := fs.String("raw", "", "write each answer to this file, as JSON")
	only := fs.Int("trap", -1, "only this trap")
	_ = fs.Parse(args)
	if *quick {
		*lasts = time.Minute
	}
	servers, err := lab.StartServers(*server, *nodes)
	if err != nil {
		return err
	}
	defer servers.Close()
	var all []corpusAnswer
	count := 0
	for end, serial := time.Now().Add(*lasts), 0; time.Now().Before(end) && (*claims == 0 || count < *claims); serial += 100 {
		chosen := []int{*only}
		if *only < 0 {
			chosen = rand.Perm(len(traps))[:3]
		}
		all = append(all, askWorld(servers, serial, chosen, *asks)...)
		count = 0
		for _, a := range all {
			if a.Method == who.Inferred {
				count++
			}
		}
		fmt.Fprintf(os.Stderr, "\r%d answers, %d claims ", len(all), count)
	}
	fmt.Fprintln(os.Stderr)
	if *raw != "" {
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(*raw, text, 0o644); err != nil {
			return err
		}
	}
	printCorpus(redisVersion(servers), all)
	return nil
}

const (
	worldLasts = 40 * time.Second
	askLasts   = 15 * time.Second
)

// askWorld asks about the locks of one world, several at a time.
func askWorld(servers lab.Servers, serial int, chosen []int, asks int) (all []corpusAnswer) {
	ctx, cancel := context.WithCancel(context.Background())
	var addrs []string
	var nodes []*redlock.Node
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
		nodes = append(nodes, s.Node().Named(who.ConnName("who", "corpus")))
	}
	w, running := newTrapWorld(ctx, addrs, serial, chosen)
	pause(ctx, 2*time.Second, time.Second)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range asks {
		asking.Go(func() {
			for end := time.Now().Add(worldLasts); time.Now().Before(end); {
				k, begun := w.keys[rand.IntN(len(w.keys))], time.Now()
				got, err := who.Observe(ctx, nodes, who.Options{Key: k.key, For: askLasts, Timeout: 5 * time.Second})
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						fmt.Fprintln(os.Stderr, "bench:", err)
					}
					continue
				}
				a, ok := w.judge(k, got)
				if a.Took = time.Since(begun); !ok {
					continue
				}
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	cancel()
	running.Wait()
	return all
}

// judge compares an answer with the truth; false: there is none.
func (w *trapWorld) judge(k trapKey, got *who.Answer) (corpusAnswer, bool) {
	a := corpusAnswer{Trap: k.trap, Method: got.Method, P: got.P, Changes: got.Events}
	found, ok := w.holder.Load(got.Token.Raw())
	if !ok {
		return a, false
	}
	holder := found.(*trapApp)
	if got.Method == who.Inferred {
		a.Right = holder.groups(*got.Group)
		a.Sent, a.Strange = strangers(holder, got)
		if !a.Right || a.Strange > 0 {
			fmt.Fprintf(os.Stderr, "\nwrong: %s: %s for %s (%q from %s), p %.4f, %d changes, %d of %d connections\n",
				k.trap, got.Group, k.key, holder.name, holder.from, got.P, got.Events, a.Strange, a.Sent)
		}
	}
	for _, l := range got.Likely {
		a.Likely = append(a.Likely, corpusGuess{l.P, holder.groups(l.Group)})
	}
	return a, true
}

func strangers(holder *trapApp, got *who.Answer) (sent, strange int) {
	for _, c := range got.Conns {
		if !c.Sent {
			continue
		}
		sent++
		if !holder.bears(c.Addr.Raw()) {
			strange++
		}
	}
	return sent, strange
}

// printCorpus prints what became of the questions, by trap, and how often a claimed p was
// right.
func printCorpus(server string, all []corpusAnswer) {
	if !strings.HasPrefix(server, "Valkey") {
		server = "Redis " + server
	}
	fmt.Printf("%s\n\n| Trap | asked | inferred | right | only candidates | median to an answer |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", server)
	names := []string{""}
	for _, t := range traps {
		names = append(names, t.name)
	}
	for _, name := range append(names[1:], names[0]) {
		asked, claims, right := 0, 0, 0
		var took []time.Duration
		for _, a := range all {
			if name != "" && a.Trap != name {
				continue
			}
			asked++
			if a.Method == who.Inferred {
				claims++
				took = append(took, a.Took)
				if a.Right && a.Strange == 0 {
					right++
				}
			}
		}
		if name == "" {
			name = "all"
		}
		median := "–"
		if len(took) > 0 {
			median = fmt.Sprintf("%.1f s", percentile(took, 50).Seconds())
		}
		fmt.Printf("| %s | %d | %d | %d | %d | %s |\n", name, asked, claims, right, asked-claims, median)
	}
	fmt.Print("\n| p | called | named | right |\n| --- | --- | ---: | ---: |\n")
	var guesses []corpusGuess
	claims, right := 0, 0
	for _, a := range all {
		guesses = append(guesses, a.Likely...)
		if a.Method == who.Inferred {
			claims++
			if a.Right {
				right++
			}
		}
	}
	low := 0.0
	for _, high := range []float64{0.1, 0.2, 0.3, 0.4, 0.6, 0.95, 1.01} {
		n, yes, sum := 0, 0, 0.0
		for _, g := range guesses {
			if g.P >= low && g.P < high {
				n++
				sum += g.P
				if g.Right {
					yes++
				}
			}
		}
		if n > 0 {
			fmt.Printf("| %.2f (%.2f to %.2f) | candidate | %d | %.2f |\n", sum/float64(n), low, min(high, 1), n, float64(yes)/float64(n))
		}
		low = high
	}
	if claims > 0 {
		fmt.Printf("| %.3f or more | inferred | %d | %.4f |\n\n", who.Sure, claims, float64(right)/float64(claims))
	}
}
