// A Go program with C in it, for the tests of header insertion: cgo PORT. Both have a connection of their own. Commands
// come by standard input, each is answered with a line:
//
//	go PATH         sends a request on Go's connection, which is made with the first one, and reads the answer
//	open blocking   connects C's, by a blocking socket or by one that is not
//	open free
//	ask PATH        sends a request on C's, says how many bytes of the answer wait, and how many it then reads
//	wait PATH       the same of an answer that comes late, with a signal while C waits for it
package main

/*
#cgo LDFLAGS: -lpthread
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int c_open(int port, int is_free)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (is_free ? SOCK_NONBLOCK : 0), 0);
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EINPROGRESS)
		return -1;
	return poll(&ready, 1, 5000) == 1 ? fd : -1;
}

static int c_send(int fd, const char *path)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: peer\r\n\r\n", path);

	return send(fd, text, n, 0) == n;
}

static int c_ask(int fd, const char *path, int *ret_waiting)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char got[256];

	if (!c_send(fd, path) || poll(&ready, 1, 5000) != 1)
		return -1;
	usleep(50000);
	return ioctl(fd, FIONREAD, ret_waiting) < 0 ? -1 : (int)recv(fd, got, sizeof(got), 0);
}

static void *interrupt(void *thread)
{
	usleep(200000);
	pthread_kill(*(pthread_t *)thread, SIGURG);
	return NULL;
}

static int c_wait(int fd, const char *path)
{
	pthread_t self = pthread_self(), other;
	char got[256];
	int n;

	if (!c_send(fd, path) || pthread_create(&other, NULL, interrupt, &self))
		return -1;
	n = (int)recv(fd, got, sizeof(got), 0);
	if (n < 0)
		n = -errno;
	pthread_join(other, NULL);
	return n;
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

var conn net.Conn

func request(port, path string) (err error) {
	if conn == nil {
		if conn, err = net.Dial("tcp", "127.0.0.1:"+port); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: peer\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		response.Body.Close()
	}
	return err
}

func main() {
	port, _ := strconv.Atoi(os.Args[1])
	fd := C.int(-1)
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch words := strings.Fields(lines.Text()); words[0] {
		case "go":
			fmt.Println("go", request(os.Args[1], words[1]))
		case "open":
			isFree := 0
			if words[1] == "free" {
				isFree = 1
			}
			fd = C.c_open(C.int(port), C.int(isFree))
			fmt.Println("opened", fd >= 0)
		case "ask":
			waiting := C.int(-1)
			n := C.c_ask(fd, C.CString(words[1]), &waiting)
			fmt.Println("waiting", waiting, n)
		case "wait":
			fmt.Println("came", C.c_wait(fd, C.CString(words[1])))
		}
	}
}
