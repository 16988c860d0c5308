package series

import "fmt"

// Kind is what of a series a slot holds. A series may have all three for the same hour.
type Kind uint8

// The kinds.
const (
	Floats     Kind = iota // samples
	Histograms             // native histograms
	Exemplars
)

// Kinds lists all of them.
var Kinds = [...]Kind{Floats, Histograms, Exemplars}

// String gives "floats", "histograms" or "exemplars".
func (k Kind) String() string {
	switch k {
	case Floats:
		return "floats"
	case Histograms:
		return "histograms"
	case Exemplars:
		return "exemplars"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}
