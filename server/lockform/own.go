package lockform

import "strings"

// ownPrefix begins the keys and tombstones of this program.
const ownPrefix = "redlockctl:"

func ownTombstone(s sight) (telling, bool) {
	rest, ok := strings.CutPrefix(s.value, ownPrefix+"revoked:")
	return telling{}, ok && all(rest, base64URL)
}

// ownTokens matches 18 random bytes, one byte that counts grants and one that counts the
// turns waited, in base64url; the last character carries 4 bits.
func ownTokens(s sight) (telling, bool) {
	return telling{}, all(s.value, base64URL) && last(s.value, base64URL4) && mixed(s.value)
}

// ownedTokens matches an own token followed by a colon and its owner.
func ownedTokens(s sight) (telling, bool) {
	token, owner, ok := strings.Cut(s.value, ":")
	if !ok || !s.whole || len(s.value) > 64 || len(token) != 27 || owner == "" || !text(owner) || strings.Contains(owner, " ") {
		return telling{}, false
	}
	s.value = token
	_, ok = ownTokens(s)
	return telling{owner: owner}, ok
}

func ownKey(kind string) matcher {
	return func(s sight) (telling, bool) {
		rest, ok := strings.CutPrefix(s.key, ownPrefix)
		if !ok {
			return telling{}, false
		}
		name, ok := strings.CutPrefix(rest, kind)
		if kind == "" {
			name = ""
		}
		return telling{group: name}, ok
	}
}
