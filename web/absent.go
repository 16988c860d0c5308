package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// What a Prometheus has and a store has not: daybook scrapes no targets, evaluates no rules and sends no alerts. Clients
// ask for them all the same and take an error for a fault, so each gets what a Prometheus without any would say.
const (
	noRules         = `{"groups":[]}`
	noAlerts        = `{"alerts":[]}`
	noTargets       = `{"activeTargets":[],"droppedTargets":[],"droppedTargetCounts":{}}`
	noAlertmanagers = `{"activeAlertmanagers":[],"droppedAlertmanagers":[]}`
	noScrapePools   = `{"scrapePools":[]}`
	noneOfAList     = `[]`
	noFeatures      = `{}`
	noReplay        = `{"min":0,"max":0,"current":0}` // which is over when a request is answered
)

// always answers with the same data. The parameters are checked where there is a check.
func always(data string, check func(*call, url.Values) error) func(*call) error {
	return func(c *call) error {
		form, err := c.form()
		if err != nil {
			return err
		}
		if check != nil {
			if err := check(c, form); err != nil {
				return err
			}
		}
		return c.succeed(func(s *jsonStream) { s.WriteRaw(data) }, nil, nil)
	}
}

// checkRules checks the parameters of /api/v1/rules.
func checkRules(c *call, form url.Values) error {
	if _, err := c.matchers(form); err != nil {
		return err
	}
	kind := strings.ToLower(form.Get("type"))
	if kind != "" && kind != "alert" && kind != "record" {
		return invalid("type", fmt.Errorf("not supported value %q", kind))
	}
	if text := form.Get("exclude_alerts"); text != "" {
		if _, err := strconv.ParseBool(strings.ToLower(text)); err != nil {
			return invalid("exclude_alerts", fmt.Errorf("error converting exclude_alerts: %w", err))
		}
	}
	return nil
}

// checkTargetMetadata checks the parameters of /api/v1/targets/metadata.
func checkTargetMetadata(c *call, form url.Values) error {
	if _, err := anyLimit(form, "limit"); err != nil {
		return err
	}
	target := form.Get("match_target")
	if target == "" {
		return nil
	}
	expr, err := c.Reader.Parse(target)
	if err != nil {
		return invalid("match_target", err)
	}
	if _, ok := expr.(*parser.VectorSelector); !ok {
		return invalid("match_target", fmt.Errorf("%q is not a selector", target))
	}
	return nil
}
