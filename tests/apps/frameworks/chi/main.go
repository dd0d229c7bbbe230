// A front on chi, with a router for each mode under the first one; see ../common.
package main

import (
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	chain "example.org/common"
)

func main() {
	s := chain.New()
	router := chi.NewRouter()
	for _, mode := range chain.Modes {
		router.Route("/"+mode, func(r chi.Router) {
			r.Get("/{id}", func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(s.Work(r.Context(), r.URL.Path))
				io.WriteString(w, "front\n")
			})
		})
	}
	s.Ready()
	chain.Fail(http.ListenAndServe(s.Address(), router))
}
