// A front on gorilla/mux, with a router for each mode under the first one; see ../common.
package main

import (
	"io"
	"net/http"

	"github.com/gorilla/mux"

	chain "example.org/common"
)

func main() {
	s := chain.New()
	router := mux.NewRouter()
	for _, mode := range chain.Modes {
		router.PathPrefix("/"+mode).Subrouter().HandleFunc("/{id}", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(s.Work(r.Context(), r.URL.Path))
			io.WriteString(w, "front\n")
		}).Methods("GET")
	}
	s.Ready()
	chain.Fail(http.ListenAndServe(s.Address(), router))
}
