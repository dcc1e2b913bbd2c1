module github.com/daveshanley/vacuum

go 1.24
