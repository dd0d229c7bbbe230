module example.org/common

go 1.17
