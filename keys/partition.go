package keys

import (
	"encoding/hex"
	"errors"
	"fmt"

	"daybook/internal/series"
)

// Partition is a PartitionKey: a bucket, and the tenant where there is one.
type Partition string

// Buckets says over how many partitions the series of a tenant are spread: 16, 256 or 4096. It is fixed when a
// store is created.
type Buckets int

// ErrBuckets is returned for a number of buckets that is not a whole number of hexadecimal digits.
var ErrBuckets = errors.New("the number of buckets must be 16, 256 or 4096")

// ErrTenant is returned for a tenant that cannot be part of a key.
var ErrTenant = errors.New("a tenant is 1 to 64 characters of 0-9, a-z, - and _")

// ErrWriter is returned for a writer id that cannot be part of a property name.
var ErrWriter = errors.New("a writer id is 1 to 8 characters of 0-9 and a-z")

// Check refuses numbers that are not 16, 256 or 4096.
func (n Buckets) Check() error {
	if n.digits() == 0 {
		return fmt.Errorf("%d: %w", n, ErrBuckets)
	}
	return nil
}

func (n Buckets) digits() int {
	switch n {
	case 16:
		return 1
	case 256:
		return 2
	case 4096:
		return 3
	}
	return 0
}

// Of is the number of the series' bucket, 0 to n-1.
func (n Buckets) Of(id series.ID) int {
	twelve := int(id[4])<<4 | int(id[5])>>4
	return twelve >> (12 - 4*n.digits())
}

// Partition is the partition of a bucket of a tenant; the tenant "" is the default one and stands in no key.
func (n Buckets) Partition(bucket int, tenant string) Partition {
	p := fmt.Sprintf("%0*x", n.digits(), bucket)
	if tenant != "" {
		p += "-" + tenant
	}
	return Partition(p)
}

// MetadataPartition is the partition, of the table Meta, of what is known of a tenant's metric families.
func MetadataPartition(tenant string) Partition {
	if tenant == "" {
		return "metadata"
	}
	return Partition("metadata-" + tenant)
}

// CheckTenant refuses a tenant whose name cannot stand in a key.
func CheckTenant(tenant string) error {
	if len(tenant) < 1 || len(tenant) > 64 || !only(tenant, isKeyByte) {
		return fmt.Errorf("%q: %w", tenant, ErrTenant)
	}
	return nil
}

// CheckWriter refuses a writer id that cannot stand in a property name.
func CheckWriter(writer string) error {
	if len(writer) < 1 || len(writer) > 8 || !only(writer, isNameByte) {
		return fmt.Errorf("%q: %w", writer, ErrWriter)
	}
	return nil
}

func only(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isNameByte(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' }
func isKeyByte(c byte) bool  { return isNameByte(c) || c == '-' || c == '_' }

// hexID is the id as it stands in rows.
func hexID(id series.ID) []byte { return hex.AppendEncode(make([]byte, 0, 64), id[:]) }
