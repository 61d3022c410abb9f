// Package otlp sends the events of a monitor or a guard as OpenTelemetry logs, so that
// any collector can keep the events of many machines and clusters in one place. It is off
// unless OTEL_LOGS_EXPORTER is "otlp"; the standard OTEL_ variables set endpoint and
// headers.
//
// The source keeps its latest events anyway, and that is the queue: an [Exporter] asks
// for new ones and sends them. Nothing waits for it. While the receiver is down, the
// source drops its oldest events, which are counted.
package otlp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"redlockctl/base/sleep"
	"redlockctl/internal/audit"
	"redlockctl/monitor"
	"redlockctl/server/safetext"
)

// The attributes of a record. Queries depend on them, so they must not change.
const (
	attrCluster = "redlockctl.cluster.name"
	attrKind    = "redlockctl.event.kind"
	attrLevel   = "redlockctl.event.level"
	attrNode    = "redlockctl.node.name"
	attrLock    = "redlockctl.lock.name"
	attrToken   = "redlockctl.lock.token_sha256" // as in the audit log
	attrUntil   = "redlockctl.lock.expires_unix_ms"
	attrTimes   = "redlockctl.lock.extensions"

	attrAuditID     = "redlockctl.audit.id"    // the same for intent and outcome
	attrAuditPhase  = "redlockctl.audit.phase" // intent, done or failed
	attrAuditAct    = "redlockctl.audit.act"
	attrAuditActor  = "redlockctl.audit.actor"
	attrAuditTarget = "redlockctl.audit.target"
	attrAuditReason = "redlockctl.audit.reason"
	attrAuditDetail = "redlockctl.audit.detail"
)

const (
	lookEvery  = time.Second
	retryEvery = 5 * time.Second  // after the library's own retries
	retryFor   = 30 * time.Second // the library's retries
	lastWords  = 2 * time.Second  // to send the rest at the end
	mostBatch  = 512              // records per request
	mostAudit  = 4096             // lines of the audit log that wait; then the oldest are dropped
)

// Source has the events, and records export errors.
type Source interface {
	EventsSince(seq uint64) (events []monitor.Event, missed uint64)
	Note(monitor.Event)
}

// Exporter sends the events of one cluster. It is safe for use by many goroutines, with
// one source at a time.
type Exporter struct {
	cluster string
	client  *otlploghttp.Exporter
	events  sink
	audit   sink
	retry   time.Duration

	sent, missed, refused atomic.Uint64
}

// Counts returns how many events were sent, in records of their own or of a burst, how
// many were dropped before that, and how many the receiver refused.
func (e *Exporter) Counts() (sent, missed, refused uint64) {
	return e.sent.Load(), e.missed.Load(), e.refused.Load()
}

// New makes an exporter of this version of the program, or returns nil if export is off.
// It contacts nobody.
func New(cluster, version string) (*Exporter, error) {
	if os.Getenv("OTEL_LOGS_EXPORTER") != "otlp" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s: %q is not supported: use http/protobuf", name, p)
		}
	}
	// The library prints errors to standard error, which may be a screen.
	var wrong error
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { wrong = errors.Join(wrong, err) }))
	defer otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	client, err := otlploghttp.New(context.Background(), otlploghttp.WithRetry(otlploghttp.RetryConfig{
		Enabled: true, InitialInterval: time.Second, MaxInterval: retryEvery, MaxElapsedTime: retryFor,
	}))
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	about, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "redlockctl"),
			attribute.String("service.version", version), attribute.String("service.instance.id", instance())),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	e := &Exporter{cluster: safetext.Escape(cluster), client: client, retry: retryEvery}
	for _, s := range []*sink{&e.events, &e.audit} {
		s.to = &batch{}
		s.logger = sdk.NewLoggerProvider(sdk.WithResource(about), sdk.WithProcessor(s.to)).Logger("redlockctl")
	}
	return e, nil
}

// sink makes records of one kind. It is not safe for use by several goroutines.
type sink struct {
	to     *batch
	logger log.Logger
}

// instance identifies this exporter of this process: a random UUID, as the conventions of
// OpenTelemetry ask.
func instance() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Run sends the events of a source until ctx ends, and then the rest.
func (e *Exporter) Run(ctx context.Context, from Source) {
	var seq uint64
	failing := false
	for ctx.Err() == nil {
		tried, err := e.send(ctx, from, &seq)
		if ctx.Err() != nil {
			break
		}
		if tried && failing != (err != nil) {
			failing = err != nil
			from.Note(stateOf(err))
		}
		wait := lookEvery
		if failing {
			wait = e.retry
		}
		_ = sleep.For(ctx, wait)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	_, _ = e.send(last, from, &seq)
}

// stateOf returns the event for a stop of the export, or for its end.
func stateOf(err error) monitor.Event {
	e := monitor.Event{At: time.Now(), Level: monitor.LevelNotice, Kind: "export", Text: safetext.New("exporting events goes on")}
	if err != nil {
		e.Level, e.Text = monitor.LevelAlarm, safetext.New("events are not exported; all else goes on: "+credentials.ReplaceAllString(err.Error(), "//…@"))
	}
	return e
}

// credentials match those in an address, which no error may show.
var credentials = regexp.MustCompile(`//[^/\s"]*@`)

// send sends all events after seq, and sets seq to the last one that was sent or refused
// for good. It reports whether there was something to send.
func (e *Exporter) send(ctx context.Context, from Source, seq *uint64) (tried bool, err error) {
	events, _ := from.EventsSince(*seq)
	var refused error
	for tried = len(events) > 0; len(events) > 0; {
		n := min(len(events), mostBatch)
		last := events[n-1].Seq
		missed := last - *seq - uint64(n) // the source did not keep them
		lines := fold(events[:n])
		if missed > 0 {
			lines = append(lines, monitor.Event{At: events[n-1].At, Level: monitor.LevelNotice, Kind: "missed",
				Text: safetext.New(fmt.Sprintf("%d events could not be kept until they were sent: too many at once, or the receiver did not answer", missed))})
		}
		err := e.client.Export(ctx, recordsOf(ctx, e.events, lines, e.record))
		switch {
		case err == nil:
			e.sent.Add(uint64(n))
		case later(ctx, err):
			return true, err
		default:
			e.refused.Add(uint64(n))
			refused = err
		}
		e.missed.Add(missed)
		*seq, events = last, events[n:]
	}
	return tried, refused
}

// burst is how many events of one kind about locks, in one request, are one record.
const burst = 10

// fold merges bursts of events about locks, other than the everyday ones, into one event
// each.
func fold(events []monitor.Event) (lines []monitor.Event) {
	count := map[string]int{}
	foldable := func(e *monitor.Event) bool {
		return e.Level != monitor.LevelInfo && !e.Key.Empty() && e.Token.Empty()
	}
	for i := range events {
		if foldable(&events[i]) {
			count[events[i].Kind]++
		}
	}
	folded := map[string]bool{}
	for _, e := range events {
		if n := count[e.Kind]; foldable(&e) && n >= burst {
			if folded[e.Kind] {
				continue
			}
			folded[e.Kind] = true
			e.Text = safetext.New(fmt.Sprintf("%d events of locks, the first is %s: %s", n, e.Key, e.Text.Raw()))
			e.Key = safetext.Text{}
		}
		lines = append(lines, e)
	}
	return lines
}

// later reports whether a retry may succeed: the receiver was not reached, did not answer
// in time, or said so.
func later(ctx context.Context, err error) bool {
	var unreached *url.Error
	return ctx.Err() != nil || errors.As(err, &unreached) || strings.Contains(err.Error(), "retry")
}

// batch is a processor that collects the records that a logger makes of events.
type batch struct{ records []sdk.Record }

func (b *batch) OnEmit(_ context.Context, r *sdk.Record) error {
	b.records = append(b.records, r.Clone())
	return nil
}
func (*batch) Enabled(context.Context, sdk.EnabledParameters) bool { return true }
func (*batch) Shutdown(context.Context) error                      { return nil }
func (*batch) ForceFlush(context.Context) error                    { return nil }

func recordsOf[T any](ctx context.Context, s sink, all []T, record func(T) log.Record) []sdk.Record {
	s.to.records = s.to.records[:0]
	for _, one := range all {
		s.logger.Emit(ctx, record(one))
	}
	return s.to.records
}

// RunAudit sends the lines of an audit log until ctx ends, and then the rest. lines returns those
// that are new.
func (e *Exporter) RunAudit(ctx context.Context, lines func() []audit.Record) {
	var waiting []audit.Record
	for ctx.Err() == nil {
		waiting = e.sendAudit(ctx, append(waiting, lines()...))
		wait := lookEvery
		if len(waiting) > 0 {
			wait = e.retry
		}
		_ = sleep.For(ctx, wait)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	e.sendAudit(last, append(waiting, lines()...))
}

// sendAudit sends lines and returns those that are to be sent again.
func (e *Exporter) sendAudit(ctx context.Context, lines []audit.Record) (left []audit.Record) {
	if more := len(lines) - mostAudit; more > 0 {
		e.missed.Add(uint64(more))
		lines = lines[more:]
	}
	for len(lines) > 0 {
		n := min(len(lines), mostBatch)
		switch err := e.client.Export(ctx, recordsOf(ctx, e.audit, lines[:n], e.auditRecord)); {
		case err == nil:
			e.sent.Add(uint64(n))
		case later(ctx, err):
			return lines
		default:
			e.refused.Add(uint64(n))
		}
		lines = lines[n:]
	}
	return nil
}

// auditRecord converts a line of the audit log to a log record.
func (e *Exporter) auditRecord(line audit.Record) log.Record {
	var r log.Record
	r.SetTimestamp(line.Time)
	r.SetObservedTimestamp(time.Now())
	r.SetEventName("redlockctl.audit")
	r.SetSeverity(severities[monitor.LevelNotice])
	r.SetSeverityText(monitor.LevelNotice.String())
	r.SetBody(attribute.StringValue(safetext.Escape(strings.TrimSpace(line.Actor + ": " + line.Act + " " + line.Target + ": " + line.Phase))))
	r.AddAttributes(attribute.String(attrCluster, safetext.Escape(line.Cluster)))
	for _, a := range []struct{ name, text string }{
		{attrAuditID, line.ID}, {attrAuditPhase, line.Phase}, {attrAuditAct, line.Act}, {attrAuditActor, line.Actor},
		{attrAuditTarget, line.Target}, {attrAuditReason, line.Reason}, {attrAuditDetail, line.Detail}, {attrToken, line.TokenSHA},
	} {
		if a.text != "" {
			r.AddAttributes(attribute.String(a.name, safetext.Escape(a.text)))
		}
	}
	return r
}

// record converts an event to a log record.
func (e *Exporter) record(event monitor.Event) log.Record {
	var r log.Record
	r.SetTimestamp(event.At)
	r.SetObservedTimestamp(event.At)
	r.SetEventName("redlockctl." + strings.ReplaceAll(event.Kind, " ", "_"))
	r.SetSeverity(severities[event.Level])
	r.SetSeverityText(event.Level.String())
	r.SetBody(attribute.StringValue(event.Text.String()))
	r.AddAttributes(attribute.String(attrCluster, e.cluster), attribute.String(attrKind, event.Kind), attribute.String(attrLevel, event.Level.String()))
	if event.Node != "" {
		r.AddAttributes(attribute.String(attrNode, safetext.Escape(event.Node)))
	}
	if !event.Key.Empty() {
		r.AddAttributes(attribute.String(attrLock, event.Key.String()))
	}
	if !event.Token.Empty() {
		r.AddAttributes(attribute.String(attrToken, audit.TokenSHA(event.Token.Raw())))
	}
	if !event.Until.IsZero() {
		r.AddAttributes(attribute.Int64(attrUntil, event.Until.UnixMilli()))
	}
	if event.Times > 0 {
		r.AddAttributes(attribute.Int(attrTimes, event.Times))
	}
	return r
}

var severities = [...]log.Severity{monitor.LevelInfo: log.SeverityInfo, monitor.LevelNotice: log.SeverityWarn, monitor.LevelAlarm: log.SeverityError}
