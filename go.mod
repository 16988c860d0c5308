module daybook

go 1.26.0
