// Package notify reports changes of a cluster's verdict and findings: it posts a document to a
// URL, or gives it to a command. A [Notifier] compares snapshots; it never makes
// their source wait, and it keeps what could not be sent yet, up to a bound.
package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"redlockctl/base/child"
	"redlockctl/base/crash"
	"redlockctl/base/sleep"
	"redlockctl/internal/view"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// Options say who is notified, and of what: a command or a URL. The zero value notifies nobody.
type Options struct {
	// Command is a program with its arguments; it has the document on its standard input.
	Command []string
	// Env is the environment of the command: without secrets of the configuration.
	Env []string
	// URL gets the document by POST, with one more header if its name is not empty. Both are
	// functions so that nothing that prints values finds a secret in them.
	URL    func() string
	Header func() (name, value string)
	// Least is the severity below which findings are left out.
	Least monitor.Severity
	// Timeout bounds each attempt; default [DefaultTimeout].
	Timeout time.Duration
	// By is who notifies; Version is that of this program.
	By, Version string
}

// DefaultTimeout is how long a receiver may take.
const DefaultTimeout = 10 * time.Second

// On reports whether somebody is to be notified.
func (o *Options) On() bool { return o.URL != nil || len(o.Command) > 0 }

// Source has the snapshots, and takes the events of a failing receiver.
type Source interface {
	Snapshot() *monitor.Snapshot
	Changed(version uint64) <-chan struct{}
	Note(monitor.Event)
}

const (
	mostWaiting = 256              // notices that wait for a receiver; then the oldest are dropped
	firstRetry  = time.Second      // then twice as long each time
	lastRetry   = time.Minute      //
	retryFor    = 15 * time.Minute // an older notice is dropped
	lastWords   = 2 * time.Second  // to send the rest at the end
	lookEvery   = 100 * time.Millisecond
)

// Notifier notifies about one cluster.
type Notifier struct {
	opt  Options
	post http.Client

	verdict monitor.Verdict // of the last notice
	open    map[finding]monitor.Finding
	dropped int // since the last notice

	retry time.Duration // [firstRetry], shorter in tests
}

// finding identifies a finding.
type finding struct{ id, node, key string }

// New makes a notifier. It contacts nobody.
func New(opt Options) *Notifier {
	opt.Timeout = cmp.Or(opt.Timeout, DefaultTimeout)
	n := &Notifier{opt: opt, verdict: monitor.VerdictUnknown, retry: firstRetry}
	// A redirect could lead a secret to another host.
	n.post.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return n
}

// notice is a document that waits to be sent.
type notice struct {
	doc     []byte
	from    time.Time
	dropped int // as in the document
}

// Run notifies of the changes of a source until ctx ends, and then sends the rest.
func (n *Notifier) Run(ctx context.Context, from Source) {
	waiting := make(chan notice, mostWaiting)
	sent := make(chan struct{})
	crash.Go(func() { defer close(sent); n.deliver(ctx, waiting, from.Note) })
	for version := uint64(0); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			continue
		case <-from.Changed(version):
		}
		s := from.Snapshot()
		version = s.Version
		for _, doc := range n.changes(s) {
			n.queue(waiting, doc)
		}
		_ = sleep.For(ctx, lookEvery)
	}
	close(waiting)
	<-sent
}

// queue puts a document into the queue, in place of the oldest if it is full.
func (n *Notifier) queue(waiting chan notice, doc view.NoticeDoc) {
	for {
		doc.Dropped = n.dropped
		line, err := view.Envelope("notice", doc)
		if err != nil {
			return // of our own types
		}
		select {
		case waiting <- notice{line, doc.At, n.dropped}:
			n.dropped = 0
			return
		default:
		}
		select {
		case old := <-waiting:
			n.dropped += 1 + old.dropped // of which it would have reported
		default:
		}
	}
}

// changes returns the notices about a snapshot. The first one with a verdict has a notice of that
// alone, with the open findings, and none if it is safe.
func (n *Notifier) changes(s *monitor.Snapshot) (docs []view.NoticeDoc) {
	if s.Cluster.Verdict == monitor.VerdictUnknown && n.open == nil {
		return nil // nothing is known yet
	}
	open := map[finding]monitor.Finding{}
	for _, f := range s.Findings {
		if f.Severity >= n.opt.Least {
			open[finding{f.ID, f.Node, f.Key.Raw()}] = f
		}
	}
	about := func(what string) view.NoticeDoc {
		return view.NoticeDoc{
			ID: rand.Text(), At: s.At, What: what, By: safetext.New(n.opt.By), Version: n.opt.Version, Cluster: safetext.New(s.Cluster.Name),
			Verdict: s.Cluster.Verdict.String(), Reason: safetext.New(s.Cluster.Reason),
		}
	}
	first := n.open == nil
	if now := s.Cluster.Verdict; now != n.verdict && !(first && now == monitor.VerdictSafe) {
		doc := about("verdict")
		doc.Before = n.verdict.String()
		for _, f := range s.Findings {
			if f.Severity >= n.opt.Least && len(doc.Findings) < mostFindings {
				doc.Findings = append(doc.Findings, view.DocOfFinding(f, s.At))
			}
		}
		docs = append(docs, doc)
	}
	tell := func(what string, these, those map[finding]monitor.Finding) {
		var found []monitor.Finding
		for key, f := range these {
			if _, there := those[key]; !there {
				found = append(found, f)
			}
		}
		slices.SortFunc(found, func(a, b monitor.Finding) int {
			return cmp.Or(-cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Key.Raw(), b.Key.Raw()))
		})
		for _, f := range found {
			doc := about(what)
			doc.Findings = []view.FindingDoc{view.DocOfFinding(f, s.At)}
			docs = append(docs, doc)
		}
	}
	if !first {
		tell("finding opened", open, n.open)
		tell("finding closed", n.open, open)
	}
	n.verdict, n.open = s.Cluster.Verdict, open
	return docs
}

// mostFindings is how many findings the notice of a verdict has.
const mostFindings = 20

// deliver sends what waits, one after the other, until the queue is closed. When ctx ends, it takes
// a moment more.
func (n *Notifier) deliver(ctx context.Context, waiting <-chan notice, note func(monitor.Event)) {
	failing := false
	var end time.Time
	for one := range waiting {
		for pause := n.retry; ; pause = min(2*pause, lastRetry) {
			timeout := n.opt.Timeout
			if ctx.Err() != nil {
				if end.IsZero() {
					end = time.Now().Add(lastWords)
				}
				if timeout = min(timeout, time.Until(end)); timeout <= 0 {
					break
				}
			}
			err := n.send(ctx, one.doc, timeout)
			if failing != (err != nil) && ctx.Err() == nil {
				failing = err != nil
				note(stateOf(err))
			}
			if err == nil || errors.As(err, new(refusal)) || time.Since(one.from) > retryFor || !end.IsZero() {
				break
			}
			_ = sleep.For(ctx, pause)
		}
	}
}

// stateOf returns the event for a receiver that fails, or works again.
func stateOf(err error) monitor.Event {
	e := monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "notify", Text: safetext.New("notices are sent again")}
	if err != nil {
		e.Level, e.Text = monitor.LevelAlarm, safetext.New("a notice is not sent: "+err.Error())
	}
	return e
}

// refusal is an answer that another attempt does not change.
type refusal struct{ error }

// send sends one document. ctx does not end it: what is under way is finished.
func (n *Notifier) send(ctx context.Context, doc []byte, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if n.opt.URL != nil {
		return n.toURL(ctx, doc)
	}
	return n.toCommand(ctx, doc)
}

func (n *Notifier) toURL(ctx context.Context, doc []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.opt.URL(), bytes.NewReader(doc))
	if err != nil {
		return refusal{errors.New("[notify] url is no URL")} // err shows it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "redlockctl/"+n.opt.Version)
	if n.opt.Header != nil {
		if name, value := n.opt.Header(); name != "" {
			req.Header.Set(name, value)
		}
	}
	answer, err := n.post.Do(req)
	if err != nil {
		if shows := (*url.Error)(nil); errors.As(err, &shows) {
			err = shows.Err // without the URL, which may be a secret
		}
		return fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	_ = answer.Body.Close()
	switch code := answer.StatusCode; {
	case code/100 == 2:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code/100 == 5:
		return fmt.Errorf("%s answered %d", req.URL.Host, code)
	default:
		return refusal{fmt.Errorf("%s answered %d", req.URL.Host, code)}
	}
}

// mostOutput is how much of a command's output an event has.
const mostOutput = 200

func (n *Notifier) toCommand(ctx context.Context, doc []byte) error {
	cmd := exec.CommandContext(ctx, n.opt.Command[0], n.opt.Command[1:]...)
	cmd.Stdin, cmd.Env, cmd.WaitDelay = bytes.NewReader(doc), n.opt.Env, time.Second
	cmd.SysProcAttr = child.Attr()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &bounded{&out}, &bounded{&out}
	var err error
	ended, startErr := child.Start(cmd, func() { err = cmd.Wait() })
	if startErr != nil {
		return startErr
	}
	<-ended
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", n.opt.Command[0], os.ErrDeadlineExceeded)
	case err != nil:
		return errors.New(strings.TrimSuffix(fmt.Sprintf("%s: %v: %s", n.opt.Command[0], err, strings.TrimSpace(out.String())), ": "))
	}
	return nil
}

// bounded keeps as much as an event may have, and drops the rest.
type bounded struct{ to *bytes.Buffer }

func (w *bounded) Write(p []byte) (int, error) {
	w.to.Write(p[:min(len(p), max(0, mostOutput-w.to.Len()))])
	return len(p), nil
}
