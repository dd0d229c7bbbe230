// A front on net/http's own multiplexer; see ../common.
package main

import (
	"io"
	"net/http"

	chain "example.org/common"
)

func main() {
	s := chain.New()
	mux := http.NewServeMux()
	for _, mode := range chain.Modes {
		mux.HandleFunc("GET /"+mode+"/{id}", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(s.Work(r.Context(), r.URL.Path))
			io.WriteString(w, "front\n")
		})
	}
	s.Ready()
	chain.Fail(http.ListenAndServe(s.Address(), mux))
}
