package web

import "daybook/internal/series"

// metadata is GET /api/v1/metadata: type, help and unit of metric families, in order of their names. A family has one of
// each, the newest, so that limit_per_metric cuts nothing off.
func metadata(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	most, err := anyLimit(form, "limit")
	if err != nil {
		return err
	}
	if _, err := anyLimit(form, "limit_per_metric"); err != nil {
		return err
	}
	var found []series.Metadata
	if family := form.Get("metric"); family == "" {
		found = c.Metadata.All()
	} else if one, ok := c.Metadata.Get(family); ok {
		found = append(found, one)
	}
	found, warnings := atMost(found, most)
	return c.succeed(func(s *jsonStream) { s.families(found) }, warnings, nil)
}

func (s *jsonStream) families(all []series.Metadata) {
	s.WriteObjectStart()
	for i, one := range all {
		if i > 0 {
			s.WriteMore()
		}
		s.text(one.Family)
		s.WriteRaw(":[")
		s.object(members{
			{"type", func() { s.text(one.Type) }},
			{"help", func() { s.text(one.Help) }},
			{"unit", func() { s.text(one.Unit) }},
		})
		s.WriteArrayEnd()
		s.letOut()
	}
	s.WriteObjectEnd()
}
