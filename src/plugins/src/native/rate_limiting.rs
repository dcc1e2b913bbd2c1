//! `rate-limiting`: so many requests of one client in a second, a minute ... a year.
//!
//! Only the `local` policy: each node counts for itself, all its workers together. Unlike Kong, which counts a request
//! after it has passed, a request is counted in the same moment as it is let through, so none passes over the limit.

use super::{Built, Native, number, path, settings};
use crate::{Context, Exit, Phases, Plugin, PluginError, PluginFacts, Step};
use gwctl_entities::Record;
use gwctl_http1::names::{RATELIMIT_LIMIT, RATELIMIT_REMAINING, RATELIMIT_RESET, RETRY_AFTER};
use gwctl_http1::{Name, Value as HeaderText};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use period::Period;
use serde::Deserialize;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

mod period;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "rate-limiting", priority: 910, version: "3.9.1", build };

const UNBOUND: &str = "00000000-0000-0000-0000-000000000000";

/// `fault_tolerant` is not here: counters in memory do not fail.
#[derive(Deserialize)]
struct Config {
    second: Option<f64>,
    minute: Option<f64>,
    hour: Option<f64>,
    day: Option<f64>,
    month: Option<f64>,
    year: Option<f64>,
    limit_by: Option<LimitBy>,
    header_name: Option<String>,
    path: Option<String>,
    policy: Option<Policy>,
    hide_client_headers: bool,
    error_code: Option<f64>,
    error_message: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum LimitBy {
    Consumer,
    Credential,
    Ip,
    Service,
    Header,
    Path,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Policy {
    Local,
    Cluster,
    Redis,
}

/// One limit and how it is told.
struct Limit {
    period: Period,
    most: f64,
    /// The same as text.
    shown: HeaderValue,
    limit_header: Name<'static>,
    remaining_header: Name<'static>,
}

/// What one limit says about a request.
struct Usage<'a> {
    limit: &'a Limit,
    remaining: f64,
}

struct RateLimiting {
    limits: Vec<Limit>,
    by: LimitBy,
    header: Option<HeaderName>,
    path: Option<String>,
    hide: bool,
    /// None when the code set is none of an error; then a refusal is a failure.
    status: Option<StatusCode>,
    message: String,
    /// Begins the names of the counters. As in Kong, rows bound to the same route and service share them.
    prefix: String,
}

fn build(config: &Record, facts: &PluginFacts) -> Built {
    let config: Config = settings(config)?;
    let unsupported = match config.policy {
        Some(Policy::Cluster) => Some("cluster"),
        Some(Policy::Redis) => Some("redis"),
        Some(Policy::Local) | None => None,
    };
    if let Some(policy) = unsupported {
        let text = format!("policy '{policy}' is not supported yet: set 'config.policy' to 'local'");
        return Err(PluginError(text));
    }
    let header = config.header_name.as_deref().map(str::parse).transpose();
    let header = header.map_err(|_| PluginError("'config.header_name' is not the name of a header".to_owned()))?;
    let code = config.error_code.unwrap_or(429.0);
    // The cast is exact: the code is a whole number in the range.
    let is_error = code.fract() == 0.0 && (400.0..600.0).contains(&code);
    let status = if is_error { StatusCode::from_u16(code as u16).ok() } else { None };
    let (route, service) = (facts.route.as_deref().unwrap_or(UNBOUND), facts.service.as_deref().unwrap_or(UNBOUND));
    Ok(std::sync::Arc::new(RateLimiting {
        limits: limits(&config),
        by: config.limit_by.unwrap_or(LimitBy::Ip),
        header,
        path: config.path,
        hide: config.hide_client_headers,
        status,
        message: config.error_message.unwrap_or_else(|| "API rate limit exceeded".to_owned()),
        prefix: format!("ratelimit:{route}:{service}:"),
    }))
}

/// The limits set, the shortest first.
fn limits(config: &Config) -> Vec<Limit> {
    macro_rules! limit {
        ($field:ident, $period:ident) => {
            config.$field.map(|most| Limit {
                period: Period::$period,
                most,
                shown: number(most),
                limit_header: Name::from_static(concat!("x-ratelimit-limit-", stringify!($field))),
                remaining_header: Name::from_static(concat!("x-ratelimit-remaining-", stringify!($field))),
            })
        };
    }
    let all = [
        limit!(second, Second),
        limit!(minute, Minute),
        limit!(hour, Hour),
        limit!(day, Day),
        limit!(month, Month),
        limit!(year, Year),
    ];
    all.into_iter().flatten().collect()
}

/// Headers for the response, set when its head is known.
struct Told(Vec<(Name<'static>, HeaderValue)>);

/// Looking at all windows of a client and counting in them is one step under one of these locks. They are those of
/// the process, since the plugin object of a row is replaced when the row changes and its counters stay.
static STEPS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

fn step(name: &str) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // The remainder is below the length, so the cast loses nothing. The lock guards no data that could be broken.
    STEPS[(hasher.finish() % STEPS.len() as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner)
}

impl RateLimiting {
    /// Whose requests are counted together; the address when what is asked for is not there.
    fn identifier<'a>(&self, context: &'a Context) -> Cow<'a, str> {
        let id = match self.by {
            LimitBy::Consumer => context.consumer_id().or_else(|| context.credential_id()).map(Cow::Borrowed),
            LimitBy::Credential => context.credential_id().map(Cow::Borrowed),
            LimitBy::Service => context.service.as_deref().map(|service| Cow::Borrowed(&*service.id)),
            LimitBy::Header => {
                let value = self.header.as_ref().and_then(|name| context.request.headers.get(name));
                value.map(|value| String::from_utf8_lossy(value.as_bytes()))
            }
            LimitBy::Path => {
                let path = path::normalise(context.request.uri.path());
                (Some(&*path) == self.path.as_deref()).then_some(path)
            }
            LimitBy::Ip => None,
        };
        id.unwrap_or_else(|| Cow::Owned(context.client.ip.to_string()))
    }

    /// Counts the request unless a limit is reached. What was left before it, and whether it may pass.
    fn count(&self, context: &Context) -> (Vec<Usage<'_>>, bool) {
        let (counters, now) = (&context.node.counters, context.now());
        let identifier = self.identifier(context);
        let mut name = String::with_capacity(self.prefix.len() + identifier.len() + ":second".len());
        name.extend([self.prefix.as_str(), &identifier, ":"]);
        let length = name.len();
        if let [limit] = self.limits.as_slice() {
            // The counter itself sees to it that looking and counting is one step.
            name.push_str(limit.period.name());
            let end = || limit.period.window(now / 1000).1 * 1000;
            let remaining = limit.most - counters.add_below(&name, limit.most, end, now) as f64;
            return (vec![Usage { limit, remaining }], remaining > 0.0);
        }
        let _step = step(&name);
        let mut usage = Vec::with_capacity(self.limits.len());
        for limit in &self.limits {
            name.truncate(length);
            name.push_str(limit.period.name());
            // Exact up to 2^53 requests in a window.
            usage.push(Usage { limit, remaining: limit.most - counters.get(&name, now) as f64 });
        }
        let passes = usage.iter().all(|usage| usage.remaining > 0.0);
        if passes {
            for limit in &self.limits {
                name.truncate(length);
                name.push_str(limit.period.name());
                let (_, end) = limit.period.window(now / 1000);
                counters.add(&name, 1, end * 1000, now);
            }
        }
        (usage, passes)
    }

    /// The headers. The unnumbered ones tell the limit that is nearest, of equals the longest.
    fn tell(&self, usage: &[Usage<'_>], passes: bool, now: u64) -> Vec<(Name<'static>, HeaderValue)> {
        let mut told = Vec::with_capacity(usage.len() * 2 + 4);
        let mut nearest: Option<(&Limit, f64, HeaderValue)> = None;
        for Usage { limit, remaining } in usage {
            // This request itself is taken off where it counted and where it was refused.
            let counts = passes || *remaining <= 0.0;
            let left = if counts { remaining - 1.0 } else { *remaining }.max(0.0);
            let text = number(left);
            if nearest.as_ref().is_none_or(|(_, least, _)| left <= *least) {
                nearest = Some((limit, left, text.clone()));
            }
            told.push((limit.limit_header, limit.shown.clone()));
            told.push((limit.remaining_header, text));
        }
        if let Some((limit, _, remaining)) = nearest {
            let passed = now - limit.period.window(now).0;
            let reset = HeaderValue::from(limit.period.seconds().saturating_sub(passed).max(1));
            told.extend([
                (RATELIMIT_LIMIT, limit.shown.clone()),
                (RATELIMIT_REMAINING, remaining),
                (RATELIMIT_RESET, reset.clone()),
            ]);
            if !passes {
                told.push((RETRY_AFTER, reset));
            }
        }
        told
    }
}

impl Plugin for RateLimiting {
    fn phases(&self) -> Phases {
        if self.hide { Phases::ACCESS } else { Phases::ACCESS | Phases::HEADER_FILTER }
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        let (usage, passes) = self.count(context);
        if !self.hide {
            let told = self.tell(&usage, passes, context.now() / 1000);
            context.slots.put(Told(told));
        }
        match self.status {
            _ if passes => Step::Next,
            Some(status) => Exit::page(status, self.message.as_str()).into(),
            None => PluginError("'config.error_code' must be from 400 to 599".to_owned()).into(),
        }
    }

    fn header_filter(&self, context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
        if let (Some(Told(told)), Some(response)) = (context.slots.take::<Told>(), &mut context.response) {
            for (name, value) in told {
                // An upstream that limits, too, keeps its own headers behind ours.
                let theirs: Vec<_> = response.headers.get_all(name).map(HeaderText::to_owned).collect();
                response.headers.insert(name, value);
                theirs.iter().for_each(|value| response.headers.append(name, value));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
