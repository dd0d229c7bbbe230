module example.org/hand

go 1.22
