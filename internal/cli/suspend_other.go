//go:build !unix

package cli

// unsuspended does nothing here: there is no Ctrl-Z that stops a process.
func unsuspended(func()) (end func()) { return func() {} }
