//go:build !unix

package printer

// Unread cannot be told here: the next write tells.
func (p *Printer) Unread() bool { return false }
