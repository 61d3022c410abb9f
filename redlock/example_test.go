package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"redlockctl/redlock"
	"redlockctl/redlock/redlocktest"
)

// connect opens a client. These examples use three masters in memory; a program uses
// servers:
//
//	n1, err := redlock.NewNode("n1", &redis.Options{Addr: "10.0.0.1:6379", Username: "locks", Password: "from a file"})
//	…
//	client, err := redlock.New([]*redlock.Node{n1, n2, n3}, redlock.Options{})
func connect() (client *redlock.Client, end func()) {
	masters, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	client, err = redlock.New(masters.Nodes(), redlock.Options{NodeTimeout: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { _ = client.Close(); _ = masters.Close() }
}

// A lock for a piece of work whose length is known.
func Example() {
	client, end := connect()
	defer end()

	ctx := context.Background()
	lock, err := client.Acquire(ctx, "invoice:42", 30*time.Second)
	switch {
	case errors.Is(err, redlock.ErrContended):
		fmt.Println("somebody else is at it:", err)
		return
	case errors.Is(err, redlock.ErrNoQuorum):
		fmt.Println("too few masters serve:", err)
		return
	case err != nil:
		log.Fatal(err)
	}
	defer lock.Release(ctx)

	for _, line := range []string{"one", "two"} {
		if !lock.Valid(time.Now()) {
			log.Fatal("the lock is over; what is left is somebody else's to do")
		}
		fmt.Println(line)
	}
	// Output:
	// one
	// two
}

// A lock that is extended for as long as the work takes.
func ExampleLock_Keep() {
	client, end := connect()
	defer end()

	lock, err := client.Acquire(context.Background(), "import", 15*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lock.Keep(redlock.KeepOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Release(context.Background())

	work := func(ctx context.Context) error { return ctx.Err() }
	if err := work(keeper.Context()); errors.Is(context.Cause(keeper.Context()), redlock.ErrLost) {
		log.Fatal("given up with the lock: ", err, keeper.Err())
	}
	fmt.Println(keeper.State())
	// Output: held
}

// All of that in one call.
func ExampleClient_Do() {
	client, end := connect()
	defer end()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wait := redlock.AcquireOptions{TTL: 15 * time.Second, Retries: redlock.UntilContextEnds}
	err := client.Do(ctx, "import", wait, func(ctx context.Context, lock *redlock.Lock) error {
		fmt.Println("working under", lock.Resource())
		return ctx.Err() // the work, as long as ctx lasts
	})
	switch {
	case errors.Is(err, redlock.ErrContended):
		fmt.Println("somebody else was at it for a minute:", err)
	case errors.Is(err, redlock.ErrLost):
		fmt.Println("the work may have been done beside another's:", err)
	}
	// Output: working under import
}

// Several locks at once: all of them, or none. Another who names them in another order
// does not wait for ever.
func ExampleClient_DoAll() {
	client, end := connect()
	defer end()

	accounts := []string{"account:9", "account:7"}
	err := client.DoAll(context.Background(), accounts, redlock.AcquireOptions{TTL: 10 * time.Second}, func(ctx context.Context, locks []*redlock.Lock) error {
		fmt.Println("from", locks[0].Resource(), "to", locks[1].Resource())
		return ctx.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: from account:9 to account:7
}

// A number that lets the resource itself turn away a holder that was paused for
// too long.
func ExampleClient_AcquireFenced() {
	client, end := connect()
	defer end()

	ctx := context.Background()
	lock, err := client.AcquireFenced(ctx, "account:7", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	const update = "UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?"
	exec := func(query string, args ...any) {} // of a database, which turns a late holder away
	exec(update, 12, lock.FencingToken(), 7, lock.FencingToken())

	_, _ = lock.Release(ctx)
	next, err := client.AcquireFenced(ctx, "account:7", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer next.Release(ctx)
	fmt.Println("it grows:", next.FencingToken() > lock.FencingToken())
	// Output: it grows: true
}

// What each node did, for a log.
func ExampleError() {
	client, end := connect()
	defer end()

	ctx := context.Background()
	if _, err := client.Acquire(ctx, "invoice:42", 30*time.Second); err != nil {
		log.Fatal(err)
	}
	_, err := client.TryAcquire(ctx, "invoice:42", 30*time.Second)
	var failed *redlock.Error
	if errors.As(err, &failed) {
		for _, n := range failed.Nodes {
			if n.Status != redlock.StatusUnanswered { // two of three decide
				fmt.Printf("%s\n", n.Status)
				break
			}
		}
		fmt.Println(errors.Is(err, redlock.ErrContended))
	}
	// Output:
	// held
	// true
}

// One hook logs each operation, counts it, or makes a span of a trace of it.
func ExampleOptions() {
	masters, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	client, err := redlock.New(masters.Nodes(), redlock.Options{
		NodeTimeout: time.Second,
		Observe: func(_ context.Context, op, resource string) func(error) {
			return func(err error) { fmt.Println(op, resource, err) }
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Acquire(ctx, "invoice:42", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = lock.Release(ctx)
	// Output:
	// acquire invoice:42 <nil>
	// release invoice:42 <nil>
}
