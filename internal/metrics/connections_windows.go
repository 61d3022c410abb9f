package metrics

// connections is how many connections may be open at a time: a process has as many as it
// likes here.
func connections() int { return mostConns }
