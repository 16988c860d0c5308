package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// fromFile sets what the settings' file says. Errors name file, line and key.
func fromFile(all []setting, path string, text []byte) (wrong []error) {
	var file map[string]any
	var malformed *toml.DecodeError
	switch err := toml.Unmarshal(text, &file); {
	case errors.As(err, &malformed):
		row, column := malformed.Position()
		return []error{fmt.Errorf("%s:%d:%d: %s", path, row, column, strings.TrimPrefix(malformed.Error(), "toml: "))}
	case err != nil:
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	lines := linesOf(text)
	found := map[string]any{}
	flatten(all, "", file, found)
	for _, key := range slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(lines.of(a), lines.of(b)), cmp.Compare(a, b))
	}) {
		i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Errorf("%s: there is no setting %q%s", lines.place(path, key), key, didYouMean(key, keysOf(all))))
		default:
			if err := all[i].setValue(found[key]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", lines.place(path, key), key, err))
			}
		}
	}
	return wrong
}

// flatten finds the full keys of what is in a table. A table that no setting is in stands for all that is in it.
func flatten(all []setting, prefix string, table map[string]any, found map[string]any) {
	for name, value := range table {
		key := prefix + name
		below, isTable := value.(map[string]any)
		if isTable && slices.ContainsFunc(all, func(s setting) bool { return strings.HasPrefix(s.key, key+".") }) {
			flatten(all, key+".", below, found)
			continue
		}
		found[key] = value
	}
}

// keyLines are the lines that set a key; a table's own line has the key "[table]".
type keyLines map[string]int

var (
	tableLine = regexp.MustCompile(`^\s*\[\s*([^\]\s]+)\s*\]`)
	keyLine   = regexp.MustCompile(`^\s*([^=#\s]+)\s*=`)
)

func linesOf(text []byte) keyLines {
	lines := keyLines{}
	prefix := ""
	for i, line := range strings.Split(string(text), "\n") {
		if m := tableLine.FindStringSubmatch(line); m != nil {
			lines["["+m[1]+"]"] = i + 1
			prefix = m[1] + "."
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			lines[strings.ReplaceAll(prefix+m[1], `"`, "")] = i + 1
		}
	}
	return lines
}

// of is the line where a key is set: by itself, as a table, or with all of its table ("log = {...}"); 0 for nowhere.
func (k keyLines) of(key string) int {
	if line := cmp.Or(k[key], k["["+key+"]"]); line > 0 {
		return line
	}
	for i := strings.LastIndexByte(key, '.'); i > 0; i = strings.LastIndexByte(key[:i], '.') {
		if line := k[key[:i]]; line > 0 {
			return line
		}
	}
	return 0
}

func (k keyLines) place(path, key string) string {
	if line := k.of(key); line > 0 {
		return fmt.Sprintf("%s:%d", path, line)
	}
	return path
}

// locate says for each wrong setting where it was set.
func locate(err error, path string, text []byte, origin map[string]string) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	lines := linesOf(text)
	for _, one := range joined.Unwrap() {
		where := "the defaults"
		var k *keyError
		if errors.As(one, &k) && origin[k.key] != "" {
			where = origin[k.key]
		} else if k != nil && lines.of(k.key) > 0 {
			where = lines.place(path, k.key)
		}
		all = append(all, fmt.Errorf("%s: %w", where, one))
	}
	return all
}
