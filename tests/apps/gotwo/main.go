// A Go server that has a library of Go loaded, with another runtime and so with other goroutines of the same numbers:
// two PORT LIBRARY BACK_PORT. Each request is open for 30 ms, and calls nobody; the library calls back all the time.
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static int begin(const char *library, const char *back)
{
	void *handle = dlopen(library, RTLD_NOW);
	void (*poll)(const char *) = handle ? (void (*)(const char *))dlsym(handle, "Poll") : NULL;

	if (!poll)
		return -1;
	poll(back);
	return 0;
}
*/
import "C"

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	if C.begin(C.CString(os.Args[2]), C.CString("http://127.0.0.1:"+os.Args[3])) != 0 {
		fmt.Fprintln(os.Stderr, "no library")
		os.Exit(1)
	}
	fmt.Println("ready")
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(30 * time.Millisecond)
			io.WriteString(w, "two\n")
		})))
	os.Exit(1)
}
