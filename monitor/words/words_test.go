package words

import "testing"

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{1023: "1023 B", 1 << 20: "1.0 MiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, not %q", n, got, want)
		}
	}
}
