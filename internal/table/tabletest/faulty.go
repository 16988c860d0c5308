package tabletest

import (
	"context"
	"errors"
	"sync"

	"daybook/internal/table"
)

// ErrInjected is what a Fault answers that has no error of its own.
var ErrInjected = errors.New("injected fault")

// Method names a method of table.Service that a Fault can strike.
type Method string

// The methods of table.Service.
const (
	Create   Method = "Create"
	Drop     Method = "Drop"
	Tables   Method = "Tables"
	Transact Method = "Transact"
	Get      Method = "Get"
	Query    Method = "Query"
	Sync     Method = "Sync"
)

// Effect is what a Fault does to a call.
type Effect uint8

const (
	// FailBefore answers with the fault's error and does nothing: the request was lost, or refused.
	FailBefore Effect = iota
	// FailAfter does what was asked and answers with the fault's error: the answer was lost. When the service itself
	// fails, its own error is answered.
	FailAfter
	// Pass does what was asked and answers truly: with Wait, a call that is merely slow.
	Pass
)

// Fault strikes one call, or all, of a method.
type Fault struct {
	Method Method
	Table  string // only calls that name this table count; "" for all
	Call   int    // which of the calls that count: 1 for the first; 0 for every one
	Effect Effect
	Err    error // what the call answers; nil for ErrInjected

	// Struck, if not nil, is called when the fault strikes, before anything else happens and from the goroutine that
	// made the call. Closing a channel in it tells a test that the call is on its way.
	Struck func()
	// Wait, if not nil, blocks the call before anything is done, until it is closed. When the context ends first, the
	// call does nothing and answers with the context's error. Made within a synctest bubble, a blocked call counts as
	// durably blocked.
	Wait <-chan struct{}
}

// FaultyService is what Faulty makes.
type FaultyService struct {
	s table.Service

	mu     sync.Mutex
	faults []*armed
	calls  map[Method]int
}

// armed is a fault and how many of the calls that count it has seen.
type armed struct {
	Fault
	seen int
}

// Faulty wraps a service so that the calls which the plan names go wrong. Every fault counts for itself, from the
// time it was added; where several strike one call, the first of the plan does. There is no chance in it: the same
// calls in the same order have the same faults. Close is never struck.
//
//	// The second transaction is done but its answer is lost, and queries are down.
//	s := tabletest.Faulty(tabletest.NewModel(),
//		tabletest.Fault{Method: tabletest.Transact, Call: 2, Effect: tabletest.FailAfter},
//		tabletest.Fault{Method: tabletest.Query})
func Faulty(s table.Service, plan ...Fault) *FaultyService {
	f := &FaultyService{s: s, calls: map[Method]int{}}
	f.Add(plan...)
	return f
}

// Add adds to the plan; a Call of 1 is the next call that counts.
func (f *FaultyService) Add(plan ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range plan {
		f.faults = append(f.faults, &armed{Fault: fault})
	}
}

// Heal ends all faults; calls that wait already go on waiting.
func (f *FaultyService) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Calls is how often a method was called, struck or not.
func (f *FaultyService) Calls(m Method) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[m]
}

// strikes counts a call and gives the fault that strikes it, or nil.
func (f *FaultyService) strikes(m Method, name string) (strikes *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[m]++
	for _, fault := range f.faults {
		if fault.Method != m || fault.Table != "" && fault.Table != name {
			continue
		}
		if fault.seen++; strikes == nil && (fault.Call == 0 || fault.Call == fault.seen) {
			strikes = &fault.Fault
		}
	}
	return strikes
}

func (f *FaultyService) call(ctx context.Context, m Method, name string, do func() error) error {
	fault := f.strikes(m, name)
	if fault == nil {
		return do()
	}
	if fault.Struck != nil {
		fault.Struck()
	}
	if fault.Wait != nil {
		select {
		case <-fault.Wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	injected := fault.Err
	if injected == nil {
		injected = ErrInjected
	}
	switch fault.Effect {
	case FailBefore:
		return injected
	case FailAfter:
		if err := do(); err != nil {
			return err
		}
		return injected
	}
	return do()
}

// Create implements table.Service.
func (f *FaultyService) Create(ctx context.Context, name string) error {
	return f.call(ctx, Create, name, func() error { return f.s.Create(ctx, name) })
}

// Drop implements table.Service.
func (f *FaultyService) Drop(ctx context.Context, name string) error {
	return f.call(ctx, Drop, name, func() error { return f.s.Drop(ctx, name) })
}

// Tables implements table.Service.
func (f *FaultyService) Tables(ctx context.Context) ([]string, error) {
	return answer(ctx, f, Tables, "", func() ([]string, error) { return f.s.Tables(ctx) })
}

// Transact implements table.Service.
func (f *FaultyService) Transact(ctx context.Context, name, partition string, ops []table.Operation) error {
	return f.call(ctx, Transact, name, func() error { return f.s.Transact(ctx, name, partition, ops) })
}

// Get implements table.Service.
func (f *FaultyService) Get(ctx context.Context, name string, key table.Key, project []string) (table.Entity, error) {
	return answer(ctx, f, Get, name, func() (table.Entity, error) { return f.s.Get(ctx, name, key, project) })
}

// Query implements table.Service.
func (f *FaultyService) Query(ctx context.Context, name string, q table.Query) (table.Page, error) {
	return answer(ctx, f, Query, name, func() (table.Page, error) { return f.s.Query(ctx, name, q) })
}

// Sync implements table.Service.
func (f *FaultyService) Sync(ctx context.Context) error {
	return f.call(ctx, Sync, "", func() error { return f.s.Sync(ctx) })
}

// Close implements table.Service.
func (f *FaultyService) Close() error { return f.s.Close() }

// answer is call for methods that give more than an error; a struck call gives nothing but its error.
func answer[A any](ctx context.Context, f *FaultyService, m Method, name string, do func() (A, error)) (A, error) {
	var got, none A
	err := f.call(ctx, m, name, func() (err error) { got, err = do(); return err })
	if err != nil {
		return none, err
	}
	return got, nil
}
