module example.org/two

go 1.17
