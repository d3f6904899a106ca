module github.com/holdfast-memory/holdfast/clients/go

go 1.23
