// What witness.c is for services that call the C library, for Go programs: built into internal/poll (go build -overlay),
// where the edge of a system call is. The calls do not block there, so all of a call's width is what may have been lost
// in it: to the computing, to other threads, to the scheduler.

package poll

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	witnessServer = 1
	witnessClient = 2

	witnessFDsMax     = 65536
	witnessHeadMax    = 144
	witnessHeaderSize = 208
	witnessCookie     = 57 // SO_COOKIE
)

type witnessEdge struct {
	before, after, lost int64
}

type witnessRecord struct {
	first, last witnessEdge
	eof         int64
	role, pid   uint32
	head        [witnessHeadMax]byte
}

type witnessConn struct {
	mutex       sync.Mutex
	cookie      uint64
	role        uint32
	hasResponse bool
	headLength  int
	record      *witnessRecord
}

var (
	witnessLog   []byte
	witnessConns []witnessConn
)

func init() {
	name, _ := syscall.Getenv("WITNESS")
	if name == "" {
		return
	}
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if syscall.Fstat(fd, &stat) != nil {
		return
	}
	log, err := syscall.Mmap(fd, 0, int(stat.Size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return
	}
	witnessConns = make([]witnessConn, witnessFDsMax)
	witnessLog = log
}

func witnessConnOf(fd int) *witnessConn {
	if witnessLog == nil || fd < 0 || fd >= witnessFDsMax {
		return nil
	}
	var cookie uint64
	size := uint32(8)
	_, _, errno := syscall.RawSyscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, witnessCookie,
		uintptr(unsafe.Pointer(&cookie)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil
	}
	conn := &witnessConns[fd]
	conn.mutex.Lock()
	defer conn.mutex.Unlock()
	if conn.cookie != cookie {
		conn.cookie, conn.role, conn.hasResponse, conn.record = cookie, 0, false, nil
	}
	return conn
}

// requestPass is for bytes of a request that pass. It returns its record if they are its first ones.
func (c *witnessConn) requestPass(role uint32, data []byte) *witnessRecord {
	isNew := c.record == nil || c.hasResponse
	if isNew {
		c.role, c.hasResponse, c.headLength, c.record = role, false, 0, nil
		n := atomic.AddUint64((*uint64)(unsafe.Pointer(&witnessLog[0])), 1) - 1
		at := witnessHeaderSize + n*uint64(unsafe.Sizeof(witnessRecord{}))
		if at+uint64(unsafe.Sizeof(witnessRecord{})) <= uint64(len(witnessLog)) {
			c.record = (*witnessRecord)(unsafe.Pointer(&witnessLog[at]))
			c.record.role, c.record.pid = role, uint32(syscall.Getpid())
		}
	}
	if c.record != nil {
		c.headLength += copy(c.record.head[c.headLength:witnessHeadMax-1], data)
	}
	if !isNew {
		return nil
	}
	return c.record
}

func (c *witnessConn) onReceived(edge witnessEdge, data []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case len(data) > 0 && c.role != witnessClient:
		if begun := c.requestPass(witnessServer, data); begun != nil {
			begun.first = edge
		}
	case len(data) > 0 && c.record != nil:
		c.hasResponse = true
		c.record.last = edge
	case len(data) == 0 && c.role == witnessClient && c.record != nil:
		c.record.eof = edge.after
	}
}

// sendBegin notes what is sent before the call, see witness.c. It returns where the call's edge belongs, or nil.
func (c *witnessConn) sendBegin(data []byte) *witnessEdge {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.role != witnessServer {
		if begun := c.requestPass(witnessClient, data); begun != nil {
			return &begun.first
		}
		return nil
	}
	c.hasResponse = true
	if c.record == nil {
		return nil
	}
	return &c.record.last
}

// sendUndo is for a call that sent nothing after all.
func (c *witnessConn) sendUndo(noted *witnessEdge) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if noted != nil && c.role == witnessClient {
		c.record = nil
	}
}

func witnessedRead(fn func(fd int, p []byte) (int, error), fd int, p []byte) (int, error) {
	conn := witnessConnOf(fd)
	if conn == nil {
		return ignoringEINTRIO(fn, fd, p)
	}
	before := runtimeNano()
	n, err := ignoringEINTRIO(fn, fd, p)
	after := runtimeNano()
	if err == nil && n >= 0 {
		conn.onReceived(witnessEdge{before, after, after - before}, p[:n])
	}
	return n, err
}

func witnessedWrite(fn func(fd int, p []byte) (int, error), fd int, p []byte) (int, error) {
	conn := witnessConnOf(fd)
	if conn == nil {
		return ignoringEINTRIO(fn, fd, p)
	}
	noted := conn.sendBegin(p)
	before := runtimeNano()
	n, err := ignoringEINTRIO(fn, fd, p)
	after := runtimeNano()
	if err != nil || n <= 0 {
		conn.sendUndo(noted)
	} else if noted != nil {
		*noted = witnessEdge{before, after, after - before}
	}
	return n, err
}
