package safetext

import (
	"encoding/json"
	"testing"
)

// What is not UTF-8 has a second field with its exact bytes, and no text imitates one.
func TestMarshal(t *testing.T) {
	type in struct {
		Key  Text   `json:"key"`
		Opt  *Text  `json:"opt,omitempty"`
		Keys []Text `json:"keys,omitempty"`
		Free any    `json:"free,omitempty"`
	}
	fake := `"key":{"text":"a","base64":"eA=="}`
	for _, c := range []struct {
		doc  in
		want string
	}{
		{in{Key: New("a")}, `{"key":"a"}`},
		{in{Key: New("a\xff")}, `{"key":"a` + "\\ufffd" + `","key_base64":"Yf8="}`},
		{in{Key: New("\x1b\u202e"), Opt: Optional("\"\\\xff")}, `{"key":"\u001b\u202e","opt":"\"\\` + "\\ufffd" + `","opt_base64":"Ilz/"}`},
		{in{Keys: Texts([]string{"a", "b,\xff", "c"})}, `{"key":"","keys":["a","b,` + "\\ufffd" + `","c"],"keys_base64":["YQ==","Yiz/","Yw=="]}`},
		{in{Keys: Texts([]string{"a", "b"}), Opt: Optional("\xff")}, `{"key":"","opt":"` + "\\ufffd" + `","opt_base64":"/w==","keys":["a","b"]}`},
		{in{Key: New("\xff"), Free: []in{{Key: New("\xfe")}}}, `{"key":"` + "\\ufffd" + `","key_base64":"/w==","free":[{"key":"` + "\\ufffd" + `","key_base64":"/g=="}]}`},
		{in{Key: New(fake + "\xff"), Opt: Optional(fake)}, ""},
	} {
		got, err := Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		if c.want != "" && string(got) != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.doc, got, c.want)
		}
		var back struct {
			Key string  `json:"key"`
			Raw []byte  `json:"key_base64"`
			Opt *string `json:"opt"`
		}
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%s: %v", got, err)
		} else if back.Raw != nil && string(back.Raw) != c.doc.Key.Raw() || back.Raw == nil && back.Key != c.doc.Key.Raw() {
			t.Errorf("%s: key %q %q, want %q", got, back.Key, back.Raw, c.doc.Key.Raw())
		}
	}
}
