// Quorum takes, extends and releases a lock by redsync on several masters at once, given as
// redis:// and rediss:// URLs, as the user LOCK_USER with LOCK_PASSWORD; LOCK_CA is a file
// of authorities. quorum.mjs does the same by node-redlock.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	lockredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "quorum:", err)
		os.Exit(1)
	}
	fmt.Println("redsync: acquired, extended, released")
}

func run(urls []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var pools []lockredis.Pool
	for _, url := range urls {
		opt, err := redis.ParseURL(url)
		if err != nil {
			return err
		}
		opt.Username, opt.Password = os.Getenv("LOCK_USER"), os.Getenv("LOCK_PASSWORD")
		if opt.TLSConfig != nil {
			pem, err := os.ReadFile(os.Getenv("LOCK_CA"))
			if err != nil {
				return err
			}
			opt.TLSConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12, ServerName: opt.TLSConfig.ServerName}
			opt.TLSConfig.RootCAs.AppendCertsFromPEM(pem)
		}
		client := redis.NewClient(opt)
		defer client.Close()
		// Each of them: a quorum would do with fewer.
		if err := client.SetNX(ctx, "lock:redsync:alone", "token", time.Millisecond).Err(); err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		pools = append(pools, goredis.NewPool(client))
	}
	m := redsync.New(pools...).NewMutex("lock:redsync", redsync.WithExpiry(2*time.Second))
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	if _, err := m.ExtendContext(ctx); err != nil {
		return err
	}
	_, err := m.UnlockContext(ctx)
	return err
}
