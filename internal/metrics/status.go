package metrics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"redlockctl/restartguard"
	"redlockctl/server/announce"
	"redlockctl/server/safetext"
)

// statusJSON is the document of /status: what the guard in this process knows.
type statusJSON struct {
	Cluster safetext.Text     `json:"cluster"`
	Guard   *guardJSON        `json:"guard"` // null: no guard in this process
	Others  []otherJSON       `json:"others"`
	Nodes   []guardedNodeJSON `json:"nodes"`
	Outlook string            `json:"outlook,omitempty"`
}

type guardJSON struct {
	ID      string `json:"id"`
	DelayMs int64  `json:"delay_ms"`
	Sick    string `json:"sick,omitempty"`
}

// otherJSON is a guard that announces itself on the nodes.
type otherJSON struct {
	ID      string        `json:"id"`
	DelayMs int64         `json:"delay_ms"`
	Host    safetext.Text `json:"host"`
	PID     int           `json:"pid,omitempty"`
	Cluster safetext.Text `json:"cluster"`
}

type guardedNodeJSON struct {
	Name      safetext.Text `json:"name"`
	Phase     string        `json:"phase"`
	Absent    string        `json:"absent,omitempty"` // how it is unreachable: down, slow, loading
	DelayMs   int64         `json:"delay_ms"`         // the D by which it counts
	RejoinMs  *int64        `json:"rejoin_ms,omitempty"`
	BootFence string        `json:"boot_fence"` // fenced, unfenced or unknown, as announced
	ExposedMs int64         `json:"exposed_ms,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Error     string        `json:"error,omitempty"`
}

// status serves what the guard knows, as JSON: of one cluster, or a list "clusters" if
// there are several and no ?cluster=NAME.
func (m *Metrics) status(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("cluster")
	clusters := m.clusters(name)
	var doc any
	switch {
	case len(clusters) == 1:
		doc = statusOf(clusters[0])
	case name != "":
		m.noCluster(w, name)
		return
	default:
		all := make([]statusJSON, 0, len(clusters))
		for _, c := range clusters {
			all = append(all, statusOf(c))
		}
		doc = map[string]any{"clusters": all}
	}
	raw, err := safetext.Marshal(doc)
	var page bytes.Buffer
	if err == nil {
		err = json.Indent(&page, raw, "", "  ")
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = page.WriteTo(w)
}

func statusOf(c Cluster) statusJSON {
	now := time.Now()
	doc := statusJSON{Cluster: safetext.New(c.Name), Others: []otherJSON{}, Nodes: []guardedNodeJSON{}}
	own := ""
	if c.Down != nil {
		doc.Outlook = safetext.Escape(c.Down.Error())
	}
	if g := c.Guard; g != nil {
		own = g.ID()
		doc.Guard = &guardJSON{ID: own, DelayMs: g.Delay().Milliseconds()}
		if err := g.Healthy(); err != nil {
			doc.Guard.Sick = safetext.Escape(err.Error())
		}
		if o := g.Outlook(); !o.Possible() {
			doc.Outlook = o.Text()
		}
		for _, s := range g.Status() {
			n := guardedNodeJSON{
				Name: safetext.New(s.Node), Phase: s.Phase.String(), DelayMs: s.Delay.Milliseconds(), BootFence: announce.BootUnknown.String(),
				Reason: s.Reason, Error: s.Err,
			}
			if s.Phase == restartguard.PhaseUnreachable && !s.Denied {
				n.Absent = cmp.Or(s.Absent, "down")
			}
			switch {
			case s.Known && s.Verified:
				n.BootFence = announce.BootFenced.String()
			case s.Known:
				n.BootFence, n.ExposedMs = announce.BootUnfenced.String(), restartguard.AtMost(s.BootExposed).Milliseconds()
			}
			if s.Phase == restartguard.PhaseFenced && !s.Until.IsZero() {
				left := max(0, s.Until.Sub(now)).Milliseconds()
				n.RejoinMs = &left
			}
			doc.Nodes = append(doc.Nodes, n)
		}
	}
	for _, g := range guardsOf(c) {
		if g.ID != own {
			doc.Others = append(doc.Others, otherJSON{ID: g.ID, DelayMs: g.Delay.Milliseconds(), Host: g.Host, PID: g.PID, Cluster: g.Cluster})
		}
	}
	return doc
}
