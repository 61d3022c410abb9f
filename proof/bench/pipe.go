package main

import (
	"bufio"
	"net"
	"sync"
)

// vote counts the answers of one round.
type vote struct {
	mu      sync.Mutex
	yes, no int
	need, n int
	decided bool
	done    chan bool
}

func (v *vote) answer(yes bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if yes {
		v.yes++
	} else {
		v.no++
	}
	if !v.decided && (v.yes >= v.need || v.no > v.n-v.need) {
		v.decided = true
		v.done <- v.yes >= v.need
	}
}

// pipe is a raw connection: bytes in order out, one line per answer back.
type pipe struct {
	conn net.Conn
	mu   sync.Mutex
	buf  []byte
	wait []*vote
	kick chan struct{}
}

func newPipe(addr string) (*pipe, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &pipe{conn: conn, kick: make(chan struct{}, 1)}
	go p.write()
	go p.read()
	return p, nil
}

func (p *pipe) send(cmd []byte, v *vote) {
	p.mu.Lock()
	p.buf = append(p.buf, cmd...)
	p.wait = append(p.wait, v)
	p.mu.Unlock()
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *pipe) write() {
	var spare []byte
	for range p.kick {
		p.mu.Lock()
		out := p.buf
		p.buf = spare[:0]
		p.mu.Unlock()
		if len(out) > 0 {
			if _, err := p.conn.Write(out); err != nil {
				return
			}
		}
		spare = out
	}
}

// read expects replies of one line: +OK, $-1 (nil) or :1.
func (p *pipe) read() {
	r := bufio.NewReader(p.conn)
	var batch []*vote
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(batch) == 0 {
			p.mu.Lock()
			batch, p.wait = p.wait, nil
			p.mu.Unlock()
		}
		batch[0].answer(line[0] == '+' || line[0] == ':' && line[1] == '1')
		batch = batch[1:]
	}
}

func (p *pipe) close() {
	_ = p.conn.Close()
	close(p.kick)
}
