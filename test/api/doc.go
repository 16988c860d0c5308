// Package api asks daybook and Prometheus's own web/api/v1 the same questions, over the same data, and compares the
// answers: status, content type, and every field of the JSON. What differs on purpose is listed with its reason.
//
// It is a module of its own, as Prometheus's API brings 110 more modules than daybook has.
package api
