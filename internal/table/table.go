// Package table says what a table service is, for everything above it: named tables of entities, each found by
// partition and row, each a set of named binary properties. It is the one seam of daybook: package embedded keeps
// the tables in this process, and every implementation passes the suite in package tabletest.
//
// The rules are those of Azure Table Storage, its limits included (see limits.go): what an implementation accepts,
// the service accepts too.
package table

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Service holds tables. Its methods may be called from many goroutines.
//
// Errors match one of the sentinels below where the caller can act on the difference; anything else is a failure of
// the service itself, after which the call may be repeated: every operation here can be.
type Service interface {
	// Create makes a table, and does nothing where it is there already. The name of a dropped table must not be
	// used again.
	Create(ctx context.Context, table string) error

	// Drop removes a table and all it holds, and does nothing where there is none.
	Drop(ctx context.Context, table string) error

	// Tables lists the names of all tables, sorted.
	Tables(ctx context.Context) ([]string, error)

	// Transact does all operations or none. They lie in one partition, name each row once, and keep the limits of
	// a transaction. What it wrote can be read at once; it is durable after the next Sync. A crash keeps all
	// transactions up to some point in the order in which they returned, and none after. The caller may use the
	// operations' memory again once it has returned.
	//
	// Where one operation is at fault the error is an *OperationError; where there is no such table, ErrNotFound.
	Transact(ctx context.Context, table, partition string, ops []Operation) error

	// Get is a point read: one entity with the projected properties (nil: all of them), sorted by name. Where the
	// entity has none of them it comes without properties; where there is no such entity or table the error is
	// ErrNotFound. The values are the caller's, here and in Query.
	Get(ctx context.Context, table string, key Key, project []string) (Entity, error)

	// Query reads a range of rows of one partition in row order, a page at a time. A page may be short or even
	// empty and still not be the last: only an empty Next says so. A missing table is empty.
	Query(ctx context.Context, table string, q Query) (Page, error)

	// Sync returns when all that transactions wrote before it was called is durable.
	Sync(ctx context.Context) error

	// Close syncs and lets go of the service.
	Close() error
}

// Key finds an entity within a table. Neither part is empty; see CheckKey.
type Key struct{ Partition, Row string }

// Property is a named value. An empty value is a value.
type Property struct {
	Name  string
	Value []byte
}

// Entity is a row of a table.
type Entity struct {
	Key        Key
	Properties []Property
}

// Property gives the value of a property, and nil where there is none.
func (e Entity) Property(name string) []byte {
	for _, p := range e.Properties {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// Kind is what an operation does.
type Kind uint8

const (
	// InsertOrMerge sets the given properties and leaves the entity's others as they are.
	InsertOrMerge Kind = iota
	// InsertOrReplace sets the given properties and removes all others.
	InsertOrReplace
	// Delete removes the entity; a missing one is removed already.
	Delete
)

// Operation is one step of a transaction.
type Operation struct {
	Kind       Kind
	Row        string
	Properties []Property // none for Delete, at least one otherwise
}

// Query is a range of rows of one partition: From <= row < To (To "" for no upper end).
type Query struct {
	Partition string
	From, To  string
	Project   []string // the properties wanted; nil for all. An entity without any of them comes without properties
	Limit     int      // at most so many rows in the page; 0 for the service's own limit, MaxPage
	Token     string   // Next of the page before, "" for the first
}

// Page is a part of the answer to a Query.
type Page struct {
	Entities []Entity
	Next     string // the Token for the next page; "" where there is none
}

// ErrNotFound says that there is no such entity, or no such table.
var ErrNotFound = errors.New("not found")

// ErrLimit says that an operation breaks a limit of the service, or a key or a name that is asked for does; repeating
// it is of no use.
var ErrLimit = errors.New("over a limit of the table service")

// ErrUnavailable says that the service cannot be reached, or has no room for the call now: nothing is wrong with the call,
// and it may be repeated later. See UnavailableError for when.
var ErrUnavailable = errors.New("the table service is unavailable")

// ErrClosed says that the service was closed.
var ErrClosed = errors.New("the table service is closed")

// OperationError says which operation of a transaction was refused. The others were not done either.
type OperationError struct {
	Index int
	Err   error
}

func (e *OperationError) Error() string {
	return fmt.Sprintf("operation %d of the transaction: %v", e.Index, e.Err)
}

// Unwrap gives the reason.
func (e *OperationError) Unwrap() error { return e.Err }

// UnavailableError is an ErrUnavailable that says why, and how long the service asks to be left alone.
type UnavailableError struct {
	After time.Duration // 0 where the service does not say
	Err   error
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("%v: %v", ErrUnavailable, e.Err) }

// Unwrap gives ErrUnavailable and the reason.
func (e *UnavailableError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }
