package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// didYouMean is the end of a message about a word that is not known: the known one that is nearest, if one is near.
func didYouMean(word string, known iter.Seq[string]) string {
	best, least := "", 3
	for one := range known {
		d := distance(plain(word), plain(one))
		if d < least || d == least && best != "" && one < best {
			best, least = one, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// plain leaves out what flags, variables and keys differ by.
func plain(word string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(word))
}

// distance is how many letters must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of a table: from the first letters of a to the first j of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// flagError says what a flag that is not known may have been meant to be.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	hint := didYouMean(unknown.GetSpecifiedName(), func(yield func(string) bool) {
		more := true
		cmd.Flags().VisitAll(func(f *pflag.Flag) { more = more && yield("--"+f.Name) })
	})
	return fmt.Errorf("%w%s (daybook --help lists all)", err, hint)
}

// noCommand refuses a word that is no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := didYouMean(args[0], func(yield func(string) bool) {
		for _, c := range cmd.Commands() {
			if !yield(c.Name()) {
				return
			}
		}
	})
	return fmt.Errorf("there is no command %q%s (daybook --help lists all)", args[0], hint)
}
