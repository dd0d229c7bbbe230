module example.org/bytes

go 1.17
