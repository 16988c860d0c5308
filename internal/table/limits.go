package table

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// The limits of Azure Table Storage
// (https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model).
const (
	MaxProperties  = 252     // of an entity, its keys and timestamp not counted
	MaxEntity      = 1 << 20 // bytes of an entity as the service counts them, see EntitySize
	MaxValue       = 64 << 10
	MaxKey         = 1 << 10 // bytes of a partition or row key in UTF-16: 512 characters
	MaxName        = 255     // characters of a property's name
	MaxOperations  = 100     // of a transaction
	MaxTransaction = 4 << 20 // bytes of a transaction as it travels, see OperationSize
	MaxPage        = 1000    // rows of a page of a query
)

// EntitySize is how many bytes of MaxEntity an entity with these properties takes: 4, two for each character of its
// keys, and for each property 8, two for each character of its name, and 4 and the length of its binary value.
func EntitySize(key Key, properties []Property) int {
	n := 4 + 2*(len(key.Partition)+len(key.Row))
	for _, p := range properties {
		n += PropertySize(p.Name, len(p.Value))
	}
	return n
}

// PropertySize is the part of EntitySize of one property.
func PropertySize(name string, value int) int { return 8 + 2*len(name) + 4 + value }

// OperationSize is a bound for the bytes of MaxTransaction that an operation takes: MIME and HTTP headers, the keys
// twice (in the address and in the body), and each value in base64 with its name and type.
func OperationSize(partition string, op Operation) int {
	n := 700 + 2*(len(partition)+len(op.Row))
	for _, p := range op.Properties {
		n += 40 + 2*len(p.Name) + (len(p.Value)+2)/3*4
	}
	return n
}

// CheckTable refuses names that are not 3 to 63 lower-case letters and digits with a letter first: the service does
// not tell names apart by case. "tables" is a name of its own.
func CheckTable(name string) error {
	ok := len(name) >= 3 && len(name) <= 63 && isLower(name[0]) && name != "tables"
	for i := 0; ok && i < len(name); i++ {
		ok = isLower(name[i]) || isDigit(name[i])
	}
	if !ok {
		return fmt.Errorf("table name %q: 3 to 63 lower-case letters and digits, a letter first: %w", name, ErrLimit)
	}
	return nil
}

// CheckKey refuses a key that no entity can have.
func CheckKey(key Key) error {
	if err := checkKey("partition key", key.Partition); err != nil {
		return err
	}
	return checkKey("row key", key.Row)
}

// CheckQuery refuses a partition or bounds that no key can be.
func CheckQuery(q Query) error {
	if err := checkKey("partition key", q.Partition); err != nil {
		return err
	}
	for _, bound := range []string{q.From, q.To} {
		if bound == "" {
			continue
		}
		if err := checkKey("row key", bound); err != nil {
			return err
		}
	}
	return nil
}

// CheckTransaction refuses what the service would refuse without looking at what is stored. The error is an
// *OperationError where one operation is at fault.
func CheckTransaction(partition string, ops []Operation) error {
	if err := checkKey("partition key", partition); err != nil {
		return err
	}
	if len(ops) < 1 || len(ops) > MaxOperations {
		return fmt.Errorf("a transaction of %d operations: 1 to %d: %w", len(ops), MaxOperations, ErrLimit)
	}
	rows := make(map[string]struct{}, len(ops))
	size := 0
	for i, op := range ops {
		if _, twice := rows[op.Row]; twice {
			return &OperationError{i, fmt.Errorf("row %q is in the transaction twice: %w", op.Row, ErrLimit)}
		}
		rows[op.Row] = struct{}{}
		if err := checkOperation(partition, op); err != nil {
			return &OperationError{i, err}
		}
		if size += OperationSize(partition, op); size > MaxTransaction {
			return &OperationError{i, fmt.Errorf("a transaction over %d bytes: %w", MaxTransaction, ErrLimit)}
		}
	}
	return nil
}

// CheckEntity refuses an entity that has become too large: n properties, size as EntitySize counts.
func CheckEntity(key Key, n, size int) error {
	if n > MaxProperties {
		return fmt.Errorf("entity %q %q would have %d properties, at most %d: %w", key.Partition, key.Row, n, MaxProperties, ErrLimit)
	}
	if size > MaxEntity {
		return fmt.Errorf("entity %q %q would have %d bytes, at most %d: %w", key.Partition, key.Row, size, MaxEntity, ErrLimit)
	}
	return nil
}

func checkOperation(partition string, op Operation) error {
	if err := checkKey("row key", op.Row); err != nil {
		return err
	}
	if op.Kind > Delete {
		return fmt.Errorf("unknown kind of operation %d: %w", op.Kind, ErrLimit)
	}
	if (op.Kind == Delete) != (len(op.Properties) == 0) {
		return fmt.Errorf("row %q: properties where none belong, or none where some do: %w", op.Row, ErrLimit)
	}
	for i, p := range op.Properties {
		if err := checkProperty(p); err != nil {
			return fmt.Errorf("row %q: %w", op.Row, err)
		}
		for _, q := range op.Properties[:i] {
			if p.Name == q.Name {
				return fmt.Errorf("row %q: property %q twice: %w", op.Row, p.Name, ErrLimit)
			}
		}
	}
	key := Key{partition, op.Row}
	return CheckEntity(key, len(op.Properties), EntitySize(key, op.Properties))
}

// checkKey refuses keys over the limit or with / \ # ? or control characters; and two things that the service takes
// but its clients get wrong: empty keys, which they refuse, and quotes, which they escape twice.
func checkKey(what, key string) error {
	n := 0 // characters of UTF-16
	for _, r := range key {
		n += utf16.RuneLen(r)
	}
	if n < 1 || 2*n > MaxKey || !utf8.ValidString(key) {
		return fmt.Errorf("%s %.600q: 1 to %d characters of valid UTF-8: %w", what, key, MaxKey/2, ErrLimit)
	}
	for _, r := range key {
		switch {
		case r == '/', r == '\\', r == '#', r == '?', r == '\'', r < 0x20, r >= 0x7f && r <= 0x9f:
			return fmt.Errorf("%s %q holds %q, which keys may not: %w", what, key, r, ErrLimit)
		}
	}
	return nil
}

// checkProperty refuses names that are not identifiers, the three that the service has itself, and large values.
func checkProperty(p Property) error {
	switch p.Name {
	case "PartitionKey", "RowKey", "Timestamp":
		return fmt.Errorf("property %q belongs to the service: %w", p.Name, ErrLimit)
	}
	ok := len(p.Name) >= 1 && len(p.Name) <= MaxName && !isDigit(p.Name[0])
	for i := 0; ok && i < len(p.Name); i++ {
		ok = isLetter(p.Name[i]) || isDigit(p.Name[i]) || p.Name[i] == '_'
	}
	if !ok {
		return fmt.Errorf("property name %q: 1 to %d letters, digits and _, no digit first: %w", p.Name, MaxName, ErrLimit)
	}
	if len(p.Value) > MaxValue {
		return fmt.Errorf("property %q has %d bytes, at most %d: %w", p.Name, len(p.Value), MaxValue, ErrLimit)
	}
	return nil
}

func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isLetter(c byte) bool { return isLower(c) || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
