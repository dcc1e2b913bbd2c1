//! `healthchecks` of an upstream, read once when a snapshot is built.

use serde_json::Value;
use std::time::Duration;

/// How a target is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    Http,
    Https,
    Tcp,
    Grpc,
    Grpcs,
}

/// Statuses from 0 to 999 as a set.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Statuses([u64; 16]);

impl Statuses {
    pub(crate) fn contains(&self, status: u16) -> bool {
        self.0.get(usize::from(status >> 6)).is_some_and(|part| part >> (status & 63) & 1 == 1)
    }

    fn read(list: &Value) -> Statuses {
        let mut set = Statuses::default();
        for status in list.as_array().into_iter().flatten().filter_map(number) {
            if let Some(part) = set.0.get_mut(status as usize >> 6) {
                *part |= 1 << (status as u64 & 63);
            }
        }
        set
    }
}

impl std::fmt::Debug for Statuses {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_set().entries((0..1000).filter(|status| self.contains(*status))).finish()
    }
}

/// Limits of the counters and what counts; a limit of 0 turns its counter off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rules {
    pub(crate) healthy: Statuses,
    pub(crate) successes: u8,
    pub(crate) unhealthy: Statuses,
    pub(crate) http_failures: u8,
    pub(crate) tcp_failures: u8,
    pub(crate) timeouts: u8,
}

impl Rules {
    fn read(check: &Value) -> Rules {
        let (healthy, unhealthy) = (&check["healthy"], &check["unhealthy"]);
        Rules {
            healthy: Statuses::read(&healthy["http_statuses"]),
            successes: limit(&healthy["successes"]),
            unhealthy: Statuses::read(&unhealthy["http_statuses"]),
            http_failures: limit(&unhealthy["http_failures"]),
            tcp_failures: limit(&unhealthy["tcp_failures"]),
            timeouts: limit(&unhealthy["timeouts"]),
        }
    }
}

/// Probing by the node itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Active {
    pub(crate) kind: Kind,
    pub(crate) rules: Rules,
    /// Pause between two probes of a healthy target; None: it is not probed.
    pub(crate) healthy_interval: Option<Duration>,
    /// The same for unhealthy ones.
    pub(crate) unhealthy_interval: Option<Duration>,
    /// For each step of a probe: connecting, shaking hands, the answer.
    pub(crate) timeout: Duration,
    /// Probes at the same time.
    pub(crate) concurrency: usize,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) sni: Option<String>,
    pub(crate) verify: bool,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Checks {
    pub(crate) active: Active,
    pub(crate) passive: Rules,
    /// Least percentage of the weight that must be healthy for the upstream to be served; 0: any.
    pub(crate) threshold: f64,
}

impl Checks {
    /// Reads a complete record; what is missing is off.
    pub(crate) fn read(checks: &Value) -> Checks {
        let active = &checks["active"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Checks {
            active: Active {
                kind: match active["type"].as_str() {
                    Some("https") => Kind::Https,
                    Some("tcp") => Kind::Tcp,
                    Some("grpc") => Kind::Grpc,
                    Some("grpcs") => Kind::Grpcs,
                    _ => Kind::Http,
                },
                rules: Rules::read(active),
                healthy_interval: seconds(&active["healthy"]["interval"]),
                unhealthy_interval: seconds(&active["unhealthy"]["interval"]),
                timeout: seconds(&active["timeout"]).unwrap_or(Duration::from_secs(1)),
                concurrency: number(&active["concurrency"]).map_or(10, |count| count.max(1.0) as usize),
                path: text(&active["http_path"]).unwrap_or_else(|| "/".to_owned()),
                headers: headers(&active["headers"]),
                sni: text(&active["https_sni"]),
                verify: active["https_verify_certificate"].as_bool().unwrap_or(true),
            },
            passive: Rules::read(&checks["passive"]),
            threshold: number(&checks["threshold"]).unwrap_or(0.0),
        }
    }

    /// Whether targets are probed.
    pub(crate) fn probe(&self) -> bool {
        self.active.healthy_interval.is_some() || self.active.unhealthy_interval.is_some()
    }

    /// Whether health counts at all. Source: Kong 3.9.1 `healthcheckers.lua`, `is_upstream_using_healthcheck`.
    pub(crate) fn are_on(&self) -> bool {
        let passive = &self.passive;
        self.probe() || passive.tcp_failures != 0 || passive.timeouts != 0 || passive.http_failures != 0
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

fn limit(value: &Value) -> u8 {
    number(value).map_or(0, |limit| limit.min(255.0) as u8)
}

fn seconds(value: &Value) -> Option<Duration> {
    number(value).filter(|seconds| *seconds > 0.0).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn headers(value: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, values) in value.as_object().into_iter().flatten() {
        let values = values.as_array().map_or(std::slice::from_ref(values), Vec::as_slice);
        headers.extend(values.iter().filter_map(|value| Some((name.clone(), value.as_str()?.to_owned()))));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_is_off() {
        let checks = Checks::read(&Value::Null);
        assert!(!checks.probe() && !checks.are_on());
        assert_eq!(checks.threshold, 0.0);
    }

    #[test]
    fn one_limit_or_interval_turns_health_on() {
        for on in [
            json!({"active": {"healthy": {"interval": 0.5}}}),
            json!({"active": {"unhealthy": {"interval": 3}}}),
            json!({"passive": {"unhealthy": {"tcp_failures": 1}}}),
            json!({"passive": {"unhealthy": {"timeouts": 1}}}),
            json!({"passive": {"unhealthy": {"http_failures": 1}}}),
        ] {
            assert!(Checks::read(&on).are_on(), "{on}");
        }
        assert!(!Checks::read(&json!({"passive": {"healthy": {"successes": 5}}})).are_on());
    }

    #[test]
    fn settings_of_probes_are_read() {
        let checks = Checks::read(&json!({"threshold": 12.5, "active": {"type": "grpcs", "timeout": 0.25,
            "concurrency": 3, "http_path": "/up", "https_sni": "s.test", "https_verify_certificate": false,
            "headers": {"X-A": ["1", "2"]}, "healthy": {"interval": 1, "http_statuses": [200, 999]}}}));
        assert_eq!((checks.active.kind, checks.active.timeout), (Kind::Grpcs, Duration::from_millis(250)));
        assert_eq!(checks.active.headers.len(), 2);
        assert_eq!((checks.active.sni.as_deref(), checks.active.verify), (Some("s.test"), false));
        let healthy = checks.active.rules.healthy;
        assert!(healthy.contains(200) && healthy.contains(999) && !healthy.contains(201));
        assert_eq!(checks.threshold, 12.5);
    }
}
