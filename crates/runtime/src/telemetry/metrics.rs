//! The metrics of a service as OTLP: what `/metrics` shows, sent to the collector from time to time. Counters and histograms count from the
//! start of the process, as there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_http::{HttpClient, Request};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tokio_util::sync::CancellationToken;

use crate::telemetry::otlp::Collector;

/// Sends what a service counts.
pub(crate) struct MetricsExporter {
    pub(super) collector: Arc<Collector>,
    pub(super) address: String,
    pub(super) service: String,
    pub(super) every: Duration,
    /// How long the last numbers may take at the end.
    pub(super) end_max: Duration,
}

impl MetricsExporter {
    /// Sends the numbers, in the text format of Prometheus, again and again until the service stops, and then once more.
    pub(crate) async fn run(self, numbers: impl Fn() -> String, stop: CancellationToken) {
        let started = nanoseconds();
        loop {
            let is_last = tokio::select! {
                () = tokio::time::sleep(self.every) => false,
                () = stop.cancelled() => true,
            };
            let text = numbers();
            let sending = self.send(&text, started);
            if is_last {
                // What is not sent by then is lost; the service ends.
                let _ = tokio::time::timeout(self.end_max, sending).await;
                return;
            }
            sending.await;
        }
    }

    async fn send(&self, text: &str, started: u64) {
        let request = export(text, &self.service, (started, nanoseconds()));
        let request = Request::post(&self.address)
            .header("content-type", "application/x-protobuf")
            .body(request.encode_to_vec().into());
        if let Ok(request) = request {
            // The collector's handle says what fails, once.
            let _ = self.collector.send_bytes(request).await;
        }
    }
}

fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// One line of the text format: a name, labels and a number.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// The numbers of a text in the Prometheus format, as the request that takes them to a collector. Times are those of the start of the
/// process and of now, in nanoseconds since 1970.
fn export(text: &str, service: &str, times: (u64, u64)) -> ExportMetricsServiceRequest {
    let mut metrics = Vec::new();
    let (mut help, mut open): (BTreeMap<&str, &str>, Option<(Metric, Points)>) = Default::default();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, doc) = rest.split_once(' ').unwrap_or((rest, ""));
            help.insert(name, doc);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            metrics.extend(open.take().map(closed));
            let Some((name, kind)) = rest.split_once(' ') else {
                continue;
            };
            let metric = Metric {
                name: name.to_owned(),
                description: help.get(name).copied().unwrap_or_default().to_owned(),
                ..Metric::default()
            };
            open = Points::of_kind(kind).map(|points| (metric, points));
        } else if let (Some(sample), Some((metric, points))) = (sample(line), &mut open) {
            points.add(&metric.name, sample, times);
        }
    }
    metrics.extend(open.take().map(closed));
    let resource = Resource {
        attributes: vec![attribute("service.name", service.to_owned())],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "concord".to_owned(),
        ..InstrumentationScope::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn closed((metric, points): (Metric, Points)) -> Metric {
    let cumulative = AggregationTemporality::Cumulative as i32;
    let data = match points {
        Points::Counter(data_points) => Data::Sum(Sum {
            data_points,
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        Points::Gauge(data_points) => Data::Gauge(Gauge { data_points }),
        Points::Histogram(points) => Data::Histogram(Histogram {
            data_points: points.into_values().map(differences).collect(),
            aggregation_temporality: cumulative,
        }),
    };
    Metric {
        data: Some(data),
        ..metric
    }
}

/// The text format counts in each bucket what is in those below it, too; OTLP does not. What is above the last bound is the last.
fn differences(mut point: HistogramDataPoint) -> HistogramDataPoint {
    let mut below = 0;
    for count in &mut point.bucket_counts {
        (*count, below) = (count.saturating_sub(below), *count);
    }
    point
}

/// The points of a metric that is being read.
enum Points {
    Counter(Vec<NumberDataPoint>),
    Gauge(Vec<NumberDataPoint>),
    /// By labels.
    Histogram(BTreeMap<Vec<(String, String)>, HistogramDataPoint>),
}

impl Points {
    fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "counter" => Some(Self::Counter(Vec::new())),
            "gauge" => Some(Self::Gauge(Vec::new())),
            "histogram" => Some(Self::Histogram(BTreeMap::new())),
            _ => None,
        }
    }

    fn add(&mut self, metric: &str, sample: Sample<'_>, (started, now): (u64, u64)) {
        let points = match self {
            Self::Histogram(points) => {
                return add_to_histogram(points, metric, sample, (started, now));
            }
            Self::Counter(points) | Self::Gauge(points) => points,
        };
        let labels = sample.labels.into_iter();
        points.push(NumberDataPoint {
            attributes: labels.map(|(key, value)| attribute(key, value)).collect(),
            start_time_unix_nano: started,
            time_unix_nano: now,
            value: Some(number_data_point::Value::AsDouble(sample.value)),
            ..NumberDataPoint::default()
        });
    }
}

fn add_to_histogram(
    points: &mut BTreeMap<Vec<(String, String)>, HistogramDataPoint>,
    metric: &str,
    sample: Sample<'_>,
    (started, now): (u64, u64),
) {
    let is_bound = |(key, _): &(&str, String)| *key == "le";
    let (bound, labels): (Vec<_>, Vec<_>) = sample.labels.into_iter().partition(is_bound);
    let labels: Vec<(String, String)> = labels
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    let point = points
        .entry(labels)
        .or_insert_with_key(|labels| HistogramDataPoint {
            attributes: labels
                .iter()
                .map(|(key, value)| attribute(key, value.clone()))
                .collect(),
            start_time_unix_nano: started,
            time_unix_nano: now,
            ..HistogramDataPoint::default()
        });
    match sample.name.strip_prefix(metric) {
        Some("_sum") => point.sum = Some(sample.value),
        Some("_count") => point.count = whole(sample.value),
        Some("_bucket") => {
            point.bucket_counts.push(whole(sample.value));
            let bound = bound
                .first()
                .and_then(|(_, bound)| bound.parse::<f64>().ok());
            point
                .explicit_bounds
                .extend(bound.filter(|bound| bound.is_finite()));
        }
        _ => {}
    }
}

/// A count as it is written: a number without a fraction.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

fn attribute(key: &str, value: String) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value)),
        }),
        ..KeyValue::default()
    }
}

/// Reads a line with a number; none for a comment, or what is no such line.
fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, after) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((key, value));
            rest = after;
        }
        rest = rest.strip_prefix('}')?;
    }
    // What stands behind the number is an exemplar or a time.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// The text up to the next quotation mark, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(place + 1..)?)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> Vec<Metric> {
        let request = export(text, "concord-x", (1, 2));
        let mut resources = request.resource_metrics;
        resources.remove(0).scope_metrics.remove(0).metrics
    }

    #[test]
    fn a_line_is_read_with_its_labels() {
        let expected = Sample {
            name: "a_total",
            labels: vec![("x", "1,}\" \n".into()), ("y", String::new())],
            value: 7.0,
        };
        assert_eq!(
            sample("a_total{x=\"1,}\\\" \\n\",y=\"\"} 7"),
            Some(expected)
        );
        assert_eq!(
            sample("up 1.5 # {} 3").map(|sample| sample.value),
            Some(1.5)
        );
        for none in ["", "# EOF", "a{x=\"1} 7", "a seven"] {
            assert_eq!(sample(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_is_counted_is_what_the_text_says() {
        let text = "# HELP a What.\n# TYPE a counter\na_total{x=\"1\"} 3\na_total{x=\"2\"} 4\n\
            # TYPE g gauge\ng -1.5\n# TYPE odd unknown\nodd 1\n\
            # TYPE h histogram\nh_sum{c=\"d\"} 9.5\nh_count{c=\"d\"} 6\n\
            h_bucket{le=\"1.0\",c=\"d\"} 2\nh_bucket{le=\"5.0\",c=\"d\"} 5\nh_bucket{le=\"+Inf\",c=\"d\"} 6\n# EOF\n";
        let metrics = metrics(text);
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["a", "g", "h"]);
        assert_eq!(metrics[0].description, "What.");
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{:?}", metrics[0])
        };
        assert_eq!((sum.data_points.len(), sum.is_monotonic), (2, true));
        let Some(Data::Histogram(histogram)) = &metrics[2].data else {
            panic!("{:?}", metrics[2])
        };
        let [point] = histogram.data_points.as_slice() else {
            panic!("{histogram:?}")
        };
        assert_eq!((point.sum, point.count), (Some(9.5), 6));
        assert_eq!(point.explicit_bounds, [1.0, 5.0]);
        assert_eq!(point.bucket_counts, [2, 3, 1]);
        assert_eq!(point.attributes, [attribute("c", "d".into())]);
    }
}
