//! Settings of the plugin, the older ones among them.

use crate::PluginError;
use crate::export::QueueOptions;
use gwctl_traces::{Format, Injection, Propagation};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Deserialize)]
pub(super) struct Config {
    pub(super) traces_endpoint: Option<String>,
    pub(super) logs_endpoint: Option<String>,
    pub(super) headers: Option<BTreeMap<String, String>>,
    pub(super) resource_attributes: Option<BTreeMap<String, String>>,
    queue: Option<Queue>,
    batch_span_count: Option<u32>,
    batch_flush_delay: Option<u32>,
    connect_timeout: Option<u64>,
    send_timeout: Option<u64>,
    read_timeout: Option<u64>,
    pub(super) http_response_header_for_traceid: Option<String>,
    header_type: Option<String>,
    pub(super) sampling_rate: Option<f64>,
    propagation: Option<Propagated>,
}

#[derive(Deserialize, Default)]
struct Queue {
    max_batch_size: Option<u32>,
    max_coalescing_delay: Option<f64>,
    max_entries: Option<u32>,
    max_bytes: Option<u64>,
    max_retry_time: Option<f64>,
    initial_retry_delay: Option<f64>,
    max_retry_delay: Option<f64>,
}

#[derive(Deserialize, Default)]
struct Propagated {
    extract: Option<Vec<String>>,
    clear: Option<Vec<String>>,
    inject: Option<Vec<String>>,
    default_format: Option<String>,
}

/// What a collector may take for a part of its answer.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) connect: Duration,
    pub(super) read: Duration,
    pub(super) whole: Duration,
}

impl Config {
    /// The older settings count when they are not what they were by default.
    ///
    /// Source: Kong 3.9.1 `kong/tools/queue.lua`, `get_plugin_params`.
    pub(super) fn queue(&self) -> QueueOptions {
        let none = Queue::default();
        let queue = self.queue.as_ref().unwrap_or(&none);
        let batch = self.batch_span_count.filter(|count| *count != 200).or(queue.max_batch_size).unwrap_or(200);
        let delay = self.batch_flush_delay.filter(|delay| *delay != 3).map(f64::from);
        let delay = delay.or(queue.max_coalescing_delay).unwrap_or(1.0);
        QueueOptions {
            max_batch_size: batch.max(1) as usize,
            max_coalescing_delay: seconds(delay),
            max_entries: queue.max_entries.unwrap_or(10_000) as usize,
            max_bytes: queue.max_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            max_retry_time: seconds(queue.max_retry_time.unwrap_or(60.0)),
            initial_retry_delay: seconds(queue.initial_retry_delay.unwrap_or(0.01)),
            max_retry_delay: seconds(queue.max_retry_delay.unwrap_or(60.0)),
        }
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        // Zero would be no time at all.
        let time =
            |millis: Option<u64>, default| Duration::from_millis(millis.filter(|time| *time > 0).unwrap_or(default));
        let (connect, read) = (time(self.connect_timeout, 1000), time(self.read_timeout, 5000));
        Timeouts { connect, read, whole: connect + time(self.send_timeout, 5000) + read }
    }

    /// `propagation` when it says more than its default format, else what `header_type` means.
    ///
    /// Source: Kong 3.9.1 `kong/observability/tracing/propagation/init.lua`, `get_plugin_params`.
    pub(super) fn propagation(&self) -> Result<Propagation, PluginError> {
        let none = Propagated::default();
        let said = self.propagation.as_ref().unwrap_or(&none);
        let default = said.default_format.as_deref().map_or(Ok(Format::W3c), format)?;
        let detailed = said.extract.is_some() || said.clear.is_some() || said.inject.is_some();
        if let Some(header_type) = self.header_type.as_deref().filter(|_| !detailed) {
            return Propagation::of_header_type(header_type, default).ok_or_else(|| unknown(header_type));
        }
        let all = |list: &Option<Vec<String>>| list.iter().flatten().cloned().collect::<Vec<_>>();
        let injection = |name: String| match name.as_str() {
            "preserve" => Ok(Injection::Preserve),
            name => format(name).map(Injection::As),
        };
        let header = |name: String| {
            name.parse()
                .map_err(|_| PluginError(format!("'{name}' of 'config.propagation.clear' is not the name of a header")))
        };
        Ok(Propagation {
            extract: all(&said.extract).iter().map(|name| format(name)).collect::<Result<_, _>>()?,
            inject: all(&said.inject).into_iter().map(injection).collect::<Result<_, _>>()?,
            clear: all(&said.clear).into_iter().map(header).collect::<Result<_, _>>()?,
            default,
        })
    }
}

fn format(name: &str) -> Result<Format, PluginError> {
    Format::named(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> PluginError {
    PluginError(format!("'{name}' is not a format of trace headers"))
}

fn seconds(seconds: f64) -> Duration {
    // Negative and immense ones are outside of what the schema allows.
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
