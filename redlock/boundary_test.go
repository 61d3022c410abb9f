package redlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlockctl/internal/lab/sessions"
	"redlockctl/server/resp"
)

// A reply on which the client library panics is an error of its command, which names node and command; the
// connection is not used again.
func TestPanicOfTheClientLibraryIsAnError(t *testing.T) {
	const wrong = "*2\r\n$16\r\nfield statistics\r\n*1\r\n*0\r\n"
	for name, ask := range map[string]func(c *redis.Client) (error, error){
		"alone": func(c *redis.Client) (error, error) {
			cmd := c.FTInfo(t.Context(), "x")
			_, err := cmd.Result()
			return err, cmd.Err()
		},
		"in a pipeline": func(c *redis.Client) (error, error) {
			p := c.Pipeline()
			p.Ping(t.Context())
			cmd := p.FTInfo(t.Context(), "x")
			_, err := p.Exec(t.Context())
			return err, cmd.Err()
		},
		"in a transaction": func(c *redis.Client) (error, error) {
			p := c.TxPipeline()
			cmd := p.FTInfo(t.Context(), "x")
			_, err := p.Exec(t.Context())
			return err, cmd.Err()
		},
	} {
		said := sessions.Greeting
		switch name {
		case "in a pipeline":
			said += "+PONG\r\n"
		case "in a transaction":
			said += "+OK\r\n+QUEUED\r\n*1\r\n"
		}
		c := ConnectOnce(scripted(t, said+wrong+"+PONG\r\n"), time.Second)
		err, own := ask(c)
		if !errors.Is(err, resp.ErrPanic) || !errors.Is(err, resp.ErrBad) || !errors.Is(own, resp.ErrPanic) {
			t.Errorf("%s: %v; the command: %v", name, err, own)
			continue
		}
		for _, part := range []string{"n1: ", "index out of range", "search_commands.go:"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s: the connection is used again", name)
		}
		_ = c.Close()
	}
}

// Also in the greeting, which the client library asks for by itself.
func TestPanicInTheGreetingIsAnError(t *testing.T) {
	c := ConnectOnce(scripted(t, sessions.Greeting).Named("a name"), time.Second)
	defer c.Close()
	c.AddHook(panics{})
	if err := c.Ping(t.Context()).Err(); !errors.Is(err, resp.ErrPanic) || !strings.Contains(err.Error(), "n1: hello") {
		t.Error(err)
	}
}

// panics is a client library that panics on the reply to the greeting.
type panics struct{ boundary }

func (panics) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" {
			panic("broken")
		}
		return next(ctx, cmd)
	}
}
