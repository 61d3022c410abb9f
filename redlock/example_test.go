package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/redlock"
)

// connect opens a client over three masters.
func connect() (*redlock.Client, error) {
	var nodes []*redlock.Node
	for name, addr := range map[string]string{"n1": "10.0.0.1:6379", "n2": "10.0.0.2:6379", "n3": "10.0.0.3:6379"} {
		n, err := redlock.NewNode(name, &redis.Options{Addr: addr, Username: "locks", Password: "from a file"})
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return redlock.New(nodes, redlock.Options{})
}

// A lock for a piece of work whose length is known.
func Example() {
	client, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

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
}

// A lock that is extended for as long as the work takes.
func ExampleLock_Keep() {
	client, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	lock, err := client.Acquire(context.Background(), "import", 15*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	keeper := lock.Keep(redlock.KeepOptions{})
	defer keeper.Release(context.Background())

	work := func(ctx context.Context) error { return ctx.Err() }
	if err := work(keeper.Context()); errors.Is(context.Cause(keeper.Context()), redlock.ErrLost) {
		log.Fatal("given up with the lock: ", err, keeper.Err())
	}
}

// All of that in one call.
func ExampleClient_Do() {
	client, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wait := redlock.AcquireOptions{TTL: 15 * time.Second, Retries: redlock.UntilContextEnds}
	err = client.Do(ctx, "import", wait, func(ctx context.Context, lock *redlock.Lock) error {
		return ctx.Err() // the work, as long as ctx lasts
	})
	switch {
	case errors.Is(err, redlock.ErrContended):
		fmt.Println("somebody else was at it for a minute:", err)
	case errors.Is(err, redlock.ErrLost):
		fmt.Println("the work may have been done beside another's:", err)
	}
}

// A number that lets the resource itself turn away a holder that was paused for
// too long.
func ExampleClient_AcquireFenced() {
	client, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.AcquireFenced(ctx, "account:7", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Release(ctx)
	fmt.Printf("UPDATE account SET balance = 12, fence = %[1]d WHERE id = 7 AND fence < %[1]d\n", lock.FencingToken())
}

// What each node did, for a log.
func ExampleError() {
	client, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.TryAcquire(context.Background(), "invoice:42", 30*time.Second)
	var failed *redlock.Error
	if errors.As(err, &failed) {
		for _, n := range failed.Nodes {
			fmt.Printf("%s: %s %v\n", n.Node, n.Status, n.Err)
		}
	}
}
