package config

// Variable is an environment variable that the program reads. Of a secret, only whether
// it is set is printed.
type Variable struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"` // of a secret: "set" or "not set"
	Effect string `json:"effect"`
	Secret bool   `json:"-"`
}

// Environment lists the variables that the program reads, besides those that the
// configuration names.
var Environment = []Variable{
	{Name: "REDLOCKCTL_CONFIG", Effect: "which configuration, where --config does not say"},
	{Name: "REDLOCKCTL_NODES", Effect: "the masters, with commas between, where neither --nodes nor --config says"},
	{Name: "REDLOCKCTL_CLUSTER", Effect: "which cluster of it, where --cluster does not say"},
	{Name: "REDLOCKCTL_OUTPUT", Effect: "what commands that know this format print, where --output does not say"},
	{Name: "REDLOCKCTL_READ_ONLY", Effect: "1: every action is refused"},
	{Name: PasswordVariable, Effect: "the password of the masters of --nodes; the value is never printed", Secret: true},
	{Name: URLPasswordVariable, Effect: "the password of the user in --url and in [guard] witnesses; the value is never printed", Secret: true},
	{Name: "NO_COLOR", Effect: "not empty: no colours"},
	{Name: "CLICOLOR_FORCE", Effect: "neither empty nor 0: colours also in a pipe, unless NO_COLOR says no"},
	{Name: "TERM", Effect: "dumb or not set: no colours, and lines of text in place of the console"},
	{Name: "LC_ALL", Effect: "with LC_CTYPE and LANG: ASCII characters only, where the locale is not UTF-8"},
	{Name: "XDG_CONFIG_HOME", Effect: "where the configuration is looked for; $HOME/.config otherwise"},
	{Name: "XDG_STATE_HOME", Effect: "where the audit log, the record and the memory of guards are; $HOME/.local/state otherwise"},
	{Name: "HOME", Effect: "behind ~/ in paths"},
}
