module example.org/chain

go 1.17
