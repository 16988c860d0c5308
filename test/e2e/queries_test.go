package e2e

import (
	"fmt"
	"strings"
)

// written are queries thought of one by one. <midnight>, <begin> and <end> stand for times of the stream in seconds.
var written = strings.Split(strings.TrimSpace(`
temperature_celsius
temperature_celsius{host="alpha"}
temperature_celsius{host=~"a.*|beta",room!="hall"}
temperature_celsius{nobody=""}
temperature_celsius{host!~"alpha|beta"}
{__name__=~"temperature_celsius|load",host="alpha"}
{"utf8.näme"}
{"utf8.näme","with.dot"="ä"}
count by ("with.dot") ({"utf8.näme"})
nothing
nothing or load
42
-1.5e3
"text"
time()
vector(time())
pi()
temperature_celsius offset 1d
temperature_celsius offset 1h30m
temperature_celsius offset -1h
temperature_celsius offset -5m
temperature_celsius @ <midnight>
temperature_celsius @ <begin>
temperature_celsius @ <end>
temperature_celsius @ start()
temperature_celsius @ end()
rate(requests_total[5m] @ <midnight>)
rate(requests_total[10m] @ <midnight> offset 1h)
rate(requests_total[10m] offset -1h @ <midnight>)
sum_over_time(temperature_celsius[1h] @ end())
edge
edge{i="1"}
edge{i="2"} offset 1ms
edge{i="3"} offset -1ms
count_over_time(edge[1h])
count_over_time(edge[1ms])
count_over_time(edge[2ms])
count_over_time(edge[1d])
count_over_time(edge[3d])
last_over_time(edge[1h])
first_over_time(edge[1h])
timestamp(edge)
timestamp(edge{i="0"} offset 1ms)
timestamp(temperature_celsius)
sparse
sparse offset 5m
timestamp(sparse)
count_over_time(sparse[5m])
count_over_time(sparse[5m1ms])
count_over_time(sparse[4m59s999ms])
job_up
count(job_up)
sum(job_up)
job_up == 0
job_up > bool 0
count_over_time(job_up[10m])
last_over_time(job_up[6h])
absent(job_up)
absent(job_up{instance="i00"})
absent(job_up{instance="i01",job="batch"})
absent_over_time(job_up{instance="i02"}[5m])
present_over_time(job_up[1h])
changes(job_up[2h])
job_up unless on(instance) job_up offset 1h
job_up and on(instance) (job_up offset 10m)
gappy
timestamp(gappy)
count_over_time(gappy[20m])
avg_over_time(gappy[1h])
rate(gappy[10m])
delta(gappy[15m])
odd
odd + 1
-odd
odd == odd
odd != odd
odd > 0
odd >= bool 0
abs(odd)
sgn(odd)
ceil(odd)
round(odd, 0.5)
clamp(odd, -5, 5)
odd % 3
3 % odd
odd ^ 2
odd ^ 0.5
2 ^ odd
odd / 0
odd atan2 odd
max(odd)
min(odd)
count(odd)
max_over_time(odd[2h])
min_over_time(odd[2h])
sum_over_time(odd[2h])
avg_over_time(odd[2h])
stddev_over_time(odd[2h])
quantile_over_time(0.5, odd[2h])
count_over_time(odd[2h])
last_over_time(odd[2h])
changes(odd[2h])
resets(odd[2h])
delta(odd[2h])
rate(odd[2h])
idelta(odd[2h])
deriv(odd[2h])
infinite
sum_over_time(infinite[3h])
avg_over_time(infinite[3h])
max_over_time(infinite[3h])
count_values("v", infinite)
unsteady
unsteady[1m]
rate(unsteady[10m])
irate(unsteady[10m])
idelta(unsteady[3m])
deriv(unsteady[30m])
predict_linear(unsteady[30m], 600)
quantile_over_time(0.9, unsteady[1h])
stdvar_over_time(unsteady[1h])
backfilled
sum_over_time(backfilled[3h])
rate(backfilled[1h])
backfilled offset 1d
backfilled[30m]
history_total
history_total offset 30d
history_total{age="0"} @ <begin>
last_over_time(history_total[4h])
count_over_time(history_total[10d])
count_over_time(history_total[60d])
increase(history_total[7d])
rate(history_total[30d] offset 5d)
resets(history_total[65d])
last_over_time(history_total[65d])
max_over_time(rate(history_total[1d])[20d:6h])
count(last_over_time(history_total[1d]))
last_over_time(history_total[1d] offset 20d)
sum by (age) (increase(history_total[2d]))
history_total[5d]
avg_over_time(history_total[40d:1d])
stray_total
rate(stray_total[5m])
rate(stray_total[2h])
increase(stray_total[1d])
resets(stray_total[2d])
count_over_time(stray_total[2d])
stray_total[30m]
dense
rate(dense[1m])
count_over_time(dense[1h])
sum_over_time(dense[70m])
stddev_over_time(dense[10m])
quantile_over_time(0.9, dense[5m])
dense[10s]
changes(dense[1h] offset 1h)
max_over_time(dense[1d])
temperature_celsius[5m]
temperature_celsius{host="beta"}[90s] offset 1h
job_up[10m]
gappy[7m]
edge[2h]
odd{i="0"}[1h]
requests_total{host="alpha"}[3m] @ <midnight>
rate(requests_total[5m])
rate(requests_total[1m])
rate(requests_total[2m])
rate(requests_total[1h])
rate(requests_total[1d])
rate(requests_total[2d])
increase(requests_total[5m])
increase(requests_total[3h])
irate(requests_total[5m])
resets(requests_total[1d])
resets(restarts_total[2h])
increase(restarts_total[1h])
rate(restarts_total[20m])
changes(restarts_total[30m])
rate(errors_total[10m])
rate(cpu_seconds_total[1m])
rate(cpu_seconds_total[15s])
rate(cpu_seconds_total[16s])
rate(cpu_seconds_total[30s] offset 1d)
sum(rate(requests_total[5m]))
sum by (host) (rate(requests_total[5m]))
sum without (host, path) (rate(requests_total[5m]))
sum by (nobody) (requests_total)
sum by (host, code) (increase(requests_total[1h])) / ignoring(code) group_left sum by (host) (increase(requests_total[1h]))
avg by (host) (temperature_celsius)
avg(temperature_celsius)
min by (room) (temperature_celsius)
max without (room) (temperature_celsius)
stddev by (host) (temperature_celsius)
stdvar(temperature_celsius)
count by (room) (temperature_celsius > 20)
group by (host) (requests_total)
quantile(0.5, temperature_celsius)
quantile by (host) (0.9, rate(requests_total[5m]))
quantile(-1, load)
quantile(2, load)
quantile(NaN, load)
count_values("cores", cores)
count_values("a b", cores)
load offset 5
count_values by (host) ("n", queue_length)
topk(3, deriv(temperature_celsius[30m]))
topk by (room) (1, deriv(temperature_celsius[1h]))
topk(0, temperature_celsius)
topk(100, load)
bottomk(2, deriv(temperature_celsius[30m]))
bottomk by (host) (2, deriv(temperature_celsius[1h]))
sort(load)
sort_desc(rate(cpu_seconds_total[5m]))
histogram_quantile(0.5, rate(latency_seconds_bucket[5m]))
histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[10m])))
histogram_quantile(0.99, sum by (le, host) (rate(latency_seconds_bucket[1h])))
histogram_quantile(0, latency_seconds_bucket)
histogram_quantile(1, latency_seconds_bucket)
histogram_quantile(-1, latency_seconds_bucket)
histogram_quantile(1.5, latency_seconds_bucket)
histogram_quantile(NaN, latency_seconds_bucket)
histogram_quantile(0.9, requests_total)
histogram_quantile(scalar(cores{host="alpha"}) / 4, latency_seconds_bucket)
histogram_fraction(0, 0.5, rate(latency_seconds_bucket[5m]))
rate(latency_seconds_sum[5m]) / rate(latency_seconds_count[5m])
temperature_celsius + 1
1 + temperature_celsius
temperature_celsius - temperature_celsius
temperature_celsius * on(host) group_left cores
cores * on(host) group_right temperature_celsius
cores * on(host) group_right(arch) temperature_celsius
temperature_celsius * on(host) group_left(version) build_info
temperature_celsius * on(host) group_left(version, nobody) build_info
requests_total / on(host) group_left(arch) cores
cores / ignoring(arch) group_left temperature_celsius
cores == on(host) max by (host) (cores)
cores > bool ignoring(arch) group_left on_nothing
load > 1
load > bool 1
load > load offset 1m
load < on(host) cores
1 < bool 2
1 > 2
load and temperature_celsius
load and on(host) temperature_celsius{room="hall"}
load or cores
load or on(host) cores
load or ignoring(arch) cores
load unless on(host) (cores > 2)
(load > 1) or (load * 2)
temperature_celsius / on(host, room) (temperature_celsius offset 1h)
temperature_celsius - (temperature_celsius offset 1d)
(temperature_celsius - avg_over_time(temperature_celsius[1h])) / stddev_over_time(temperature_celsius[1h])
load * on(host) load
load * on() load{host="alpha"}
load * on() group_left load{host="alpha"}
load * on() group_left load
load{host="alpha"} * load{host="beta"}
temperature_celsius * on(host) cores
temperature_celsius ^ 2 % 7 - -3
-temperature_celsius ^ 2
(temperature_celsius > 20) < 25
20 < temperature_celsius
cores % 3 == 1
load atan2 ignoring(arch) cores
avg_over_time(temperature_celsius[1h])
max_over_time(temperature_celsius[1h:1m])
max_over_time(rate(requests_total[5m])[1h:5m])
max_over_time(rate(requests_total[5m])[1h:])
avg_over_time(temperature_celsius[1d:1h])
avg_over_time(temperature_celsius[1d:1h] offset 6h)
sum_over_time(sum by (host) (load)[30m:1m])
min_over_time((temperature_celsius - 20)[30m:90s])
count_over_time(job_up[3h:7m])
rate(sum by (host) (cpu_seconds_total)[30m:1m])
count_over_time(temperature_celsius[1h:1m] @ <midnight>)
max_over_time(max_over_time(load[5m:30s])[1h:10m])
quantile_over_time(0.5, load[1h:1m])
stddev_over_time(load[2h:3m] offset -1h)
last_over_time(edge[1h:1m])
count_over_time(edge{i="1"}[2h:1h])
sum_over_time(vector(1)[10m:1m])
deriv(queue_length[20m:30s])
temperature_celsius[10m:1m]
rate(requests_total{host="alpha"}[2m])[10m:2m]
time() - timestamp(load)
time()[5m:1m]
scalar(cores{host="alpha"})
scalar(cores)
scalar(nothing)
vector(scalar(cores{host="beta"}) * 2)
load > scalar(load{host="alpha"})
label_replace(load, "short", "$1", "host", "(.).*")
label_replace(load, "host", "x", "host", ".*")
label_replace(load, "__name__", "renamed", "host", "alpha")
label_replace(load, "copy", "$0", "nobody", "")
label_replace(load, "bad-name", "$1", "host", "(.*)")
label_join(temperature_celsius, "both", "-", "host", "room")
label_join(load, "host", "")
sum by (short) (label_replace(load, "short", "$1", "host", "(.).*"))
day_of_week()
day_of_month()
day_of_year()
days_in_month()
hour()
minute()
month()
year()
hour(timestamp(edge))
minute(vector(<midnight>))
day_of_week(vector(<midnight> - 1))
clamp_min(load, 1)
clamp_max(load, 0.5)
clamp(load, 1, 0)
clamp(load, NaN, 1)
round(load)
round(temperature_celsius, 0.1)
round(temperature_celsius, -5)
sqrt(load)
exp(load)
ln(load)
log2(load)
log10(queue_length)
floor(temperature_celsius)
deg(load)
rad(temperature_celsius)
sin(load) ^ 2 + cos(load) ^ 2
predict_linear(temperature_celsius[1h], 3600)
predict_linear(queue_length[30m] offset 1d, -600)
quantile_over_time(0.5, temperature_celsius[1h])
quantile_over_time(NaN, load[5m])
quantile_over_time(1.5, load[5m])
stdvar_over_time(queue_length[1h])
delta(temperature_celsius[1h])
delta(requests_total[1h])
rate(temperature_celsius[5m])
increase(load[5m])
irate(queue_length[10m])
idelta(requests_total[5m])
resets(temperature_celsius[1h])
count({__name__=~".+"})
count by (__name__) ({__name__=~".+",host="alpha"})
count by (job) (job_up)
sum(rate(requests_total{code=~"5.."}[5m])) / sum(rate(requests_total[5m]))
sum(temperature_celsius) by (host) > avg(temperature_celsius) * 3
count(count by (instance) (job_up))
max_over_time(job_up[1h]) unless job_up
(load + load) / 2 == load
group(job_up) * 0 + time()
`), "\n")

// writtenForHistograms are for native histograms. There is no changes() among them: to Prometheus two histograms differ,
// too, that have the same counts in another layout of buckets, and its chunks lay them out anew.
var writtenForHistograms = strings.Split(strings.TrimSpace(`
native_seconds
native_float_seconds
native_gauge
native_custom
mixed
native_ended
native_seconds[3m]
mixed[5m]
native_ended[10m]
native_seconds offset 1d
native_seconds @ <midnight>
rate(native_seconds[5m])
rate(native_seconds[1h])
rate(native_seconds[1d])
increase(native_seconds[2h])
irate(native_seconds[5m])
delta(native_gauge[10m])
idelta(native_gauge[10m])
rate(native_gauge[10m])
delta(native_seconds[10m])
rate(native_float_seconds[10m])
rate(native_custom[10m])
rate(mixed[10m])
rate(mixed[2h])
increase(mixed[3h])
rate(native_ended[1h])
sum(native_seconds)
sum(rate(native_seconds[5m]))
sum by (host) (rate(native_custom[5m]))
avg(native_seconds)
avg(native_custom)
count(native_seconds)
min(native_seconds)
max(mixed)
group(native_seconds)
topk(1, native_seconds)
quantile(0.5, native_seconds)
stddev(native_seconds)
count_values("v", native_custom)
histogram_count(native_seconds)
histogram_sum(native_seconds)
histogram_avg(native_seconds)
histogram_stddev(native_seconds)
histogram_stdvar(native_float_seconds)
histogram_count(rate(native_seconds[5m]))
histogram_sum(rate(native_custom[5m]))
histogram_avg(rate(native_seconds[10m]))
histogram_quantile(0.5, native_seconds)
histogram_quantile(0.9, rate(native_seconds[5m]))
histogram_quantile(0.9, rate(native_custom[5m]))
histogram_quantile(0.99, sum(rate(native_seconds[10m])))
histogram_quantile(0.1, native_gauge)
histogram_quantile(0.5, native_float_seconds)
histogram_quantile(0.5, mixed)
histogram_quantile(1, native_custom)
histogram_fraction(0, 1, native_seconds)
histogram_fraction(-1, 1, rate(native_seconds[10m]))
histogram_fraction(-Inf, 0.5, native_custom)
histogram_fraction(0.2, 0.7, native_float_seconds)
count_over_time(native_seconds[1h])
count_over_time(native_ended[3h])
count_over_time(mixed[1d])
sum_over_time(native_gauge[1h])
avg_over_time(native_gauge[1h])
sum_over_time(native_custom[30m])
max_over_time(mixed[2h])
min_over_time(native_seconds[1h])
last_over_time(native_seconds[1h])
first_over_time(mixed[1h])
present_over_time(native_ended[5m])
absent(native_seconds)
absent_over_time(native_ended[1m])
resets(native_seconds[1d])
resets(native_float_seconds[2d])
resets(mixed[6h])
timestamp(native_seconds)
native_seconds * 2
2 * native_seconds
native_seconds / 4
-native_seconds
native_seconds + native_seconds
native_seconds - native_seconds offset 5m
native_gauge + native_gauge
native_custom + on(host) native_custom
native_seconds * native_seconds
native_seconds + 1
native_seconds == native_seconds
native_seconds != native_seconds offset 1h
native_seconds > 1
native_seconds and native_custom
native_seconds unless on(host) native_gauge
native_seconds or native_custom
native_seconds * on(host) group_left cores
histogram_count(native_seconds) / on(host) cores
abs(native_seconds)
label_replace(native_custom, "a", "$1", "host", "(.).*")
sort(native_seconds)
scalar(native_gauge)
histogram_quantile(0.9, rate(native_seconds[5m])[30m:5m])
max_over_time(histogram_quantile(0.9, rate(native_seconds[5m]))[1h:5m])
sum_over_time(rate(native_seconds[5m])[30m:5m])
rate(native_seconds[5m:1m])
native_seconds[5m:1m]
quantile_over_time(0.5, mixed[2h])
deriv(mixed[3h])
predict_linear(mixed[2h], 60)
stddev_over_time(mixed[2h])
`), "\n")

// refused are queries that fail, when they are parsed or when they are evaluated.
var refused = strings.Split(strings.TrimSpace(`
sum(
load{
load{host="alpha"
load{host=~"("}
{}
{host=""}
{host=~".*"}
rate(load)
rate(load[5m)
load[5m] + 1
sum(load[5m])
load offset 5x
load @ abc
load and 1
"a" + 1
1 == 2
nofunction(load)
abs()
abs(load, load)
label_replace(load, "a", "b")
label_replace(load, "a", "$1", "host", "(")
label_replace(load, "", "$1", "host", "(.*)")
label_join(load, "", "-", "host")
topk(load)
topk(NaN, load)
topk(1e300, load)
quantile(load)
count_values("", load)
sum by (host load
load on(host) cores
load + on(host) group_left group_right cores
load + group_left cores
load[5m:1m
load[0s]
load[5m:0s]
load[-5m]
time(1)
vector(load)
scalar(1)
histogram_quantile(load, 1)
predict_linear(load[5m])
mad_over_time(load[5m])
limitk(1, load)
double_exponential_smoothing(load[5m], 0.1, 0.1)
load{__name__="cores"}
label_replace(temperature_celsius, "room", "x", "host", ".*")
label_join(temperature_celsius, "room", "")
load * on(nobody) cores
requests_total * on(host) group_left temperature_celsius
-label_replace(temperature_celsius, "room", "x", "host", ".*")
rate({__name__=~"requests_total|restarts_total|errors_total",host="alpha"}[5m])
`), "\n")

// filled puts the times of the stream into queries.
func (s *stream) filled(queries []string) []string {
	seconds := func(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
	r := strings.NewReplacer("<midnight>", seconds(s.midnight()), "<begin>", seconds(s.begin.UnixMilli()), "<end>", seconds(s.end.UnixMilli()))
	all := make([]string, len(queries))
	for i, q := range queries {
		all[i] = r.Replace(q)
	}
	return all
}

// midnight is the later of the stream's midnights UTC that are well within it.
func (s *stream) midnight() int64 {
	const day = 24 * 60 * 60 * 1000
	return (s.end.UnixMilli() - 60*60*1000) / day * day
}
