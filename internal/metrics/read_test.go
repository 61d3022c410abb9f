package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"redlockctl/restartguard"
)

func TestStatusIsReadAsItIsTold(t *testing.T) {
	h := httptest.NewServer(full().Handler())
	defer h.Close()
	for _, addr := range []string{h.URL, h.URL + "/", h.URL + "/status"} {
		got, err := ReadStatus(t.Context(), addr, "shop", Access{})
		if err != nil || got.ID != "OWN" || got.Delay != 30*time.Second || len(got.Nodes) != 3 || !got.Nodes["n2"].Known || !got.Nodes["n2"].Verified || got.Nodes["n2"].Source != restartguard.FromStatus {
			t.Errorf("%s: %+v %v", addr, got, err)
		}
	}
	if _, err := ReadStatus(t.Context(), h.URL, "test", Access{}); err == nil || !strings.Contains(err.Error(), `404: no cluster "test" (have: shop)`) {
		t.Errorf("another cluster: %v", err)
	}
	for _, addr := range []string{"", "127.0.0.1:9622", "ftp://h", "http://h/metrics", "http://h?x", "file:///etc/passwd"} {
		if _, err := ReadStatus(t.Context(), addr, "test", Access{}); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestStatusOfAStrangerIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		"": "not that of a guard", "[]": "not that of a guard", `{"guard":null}`: "runs no guard",
		`{"guard":{"id":"a","delay_ms":0}}`:                                                                     "delay is none",
		`{"guard":{"id":"a","delay_ms":86400001}}`:                                                              "delay is none",
		`{"guard":{"id":"a","delay_ms":1},"nodes":[{"name":"n1","boot_fence":"\u001b[2J"}]}`:                    "the boot fence of n1",
		`{"guard":{"id":"a","delay_ms":1},"nodes":[{"name":"n1","boot_fence":"fenced","rejoin_ms":-1}]}`:        "would rejoin",
		`{"guard":{"id":"a","delay_ms":1},"nodes":[{"name":"n1","boot_fence":"fenced","rejoin_ms":999999999}]}`: "would rejoin",
		strings.Repeat(" ", mostRead+1):                                                                         "longer than",
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		_, err := ReadStatus(t.Context(), h.URL, "test", Access{})
		h.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.80q: %v", body, err)
		}
	}
	h := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound))
	defer h.Close()
	if _, err := ReadStatus(t.Context(), h.URL, "test", Access{}); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirection: %v", err)
	}
}
