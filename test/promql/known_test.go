package promql

// known are the cases that cannot pass, with the reason. A case that passes all the same must be taken off.
var known = []struct {
	why   string
	cases []string // script:line
}{
	{
		"start timestamps are not kept: a Prometheus uses them behind a feature flag only",
		[]string{
			"start_timestamps.test:8", "start_timestamps.test:13", "start_timestamps.test:18",
			"start_timestamps.test:24", "start_timestamps.test:29", "start_timestamps.test:34",
			"start_timestamps.test:47", "start_timestamps.test:71", "start_timestamps.test:79",
			"start_timestamps.test:87", "start_timestamps.test:149", "start_timestamps.test:174",
			"start_timestamps.test:194", "start_timestamps.test:259", "start_timestamps.test:282",
			"start_timestamps.test:299", "start_timestamps.test:326", "start_timestamps.test:418",
			"start_timestamps.test:422", "start_timestamps.test:438", "start_timestamps.test:441",
			"start_timestamps.test:444", "start_timestamps.test:448", "start_timestamps.test:465",
			"start_timestamps.test:471", "start_timestamps.test:477", "start_timestamps.test:490",
			"start_timestamps.test:507", "start_timestamps.test:515", "start_timestamps.test:520",
			"start_timestamps.test:536",
		},
	},
	{
		"the hint that there was no counter reset since the sample before is not kept, which may have come late or be gone; " +
			"the engine compares the counts instead. It shows in a warning of conflicting hints only",
		[]string{
			"native_histograms.test:1884", "native_histograms.test:1889", "native_histograms.test:1948",
			"native_histograms.test:1953", "native_histograms.test:1958", "native_histograms.test:1963",
			"native_histograms.test:2017", "native_histograms.test:2022", "range_queries.test:93",
		},
	},
}
