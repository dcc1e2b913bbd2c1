//! `correlation-id`: a header that follows a request through all services.

use super::{Built, Native, settings};
use crate::{Context, Exit, Phases, Plugin, PluginError, PluginFacts, Step};
use gwctl_entities::Record;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use uuid::Uuid;

/// Line of the table.
pub(super) const NATIVE: Native = Native { name: "correlation-id", priority: 100_001, version: "3.9.1", build };

/// The id of the request, in its [slots](crate::Slots); logs name it `correlation_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorrelationId(pub HeaderValue);

#[derive(Deserialize)]
struct Config {
    header_name: Option<String>,
    generator: Generator,
    echo_downstream: bool,
}

#[derive(Deserialize, Clone, Copy)]
enum Generator {
    #[serde(rename = "uuid")]
    Uuid,
    #[serde(rename = "uuid#counter")]
    UuidAndCounter,
    #[serde(rename = "tracker")]
    Tracker,
}

struct Correlation {
    header: HeaderName,
    generator: Generator,
    echo: bool,
}

fn build(config: &Record, _facts: &PluginFacts) -> Built {
    let config: Config = settings(config)?;
    let header = config.header_name.as_deref().unwrap_or("Kong-Request-ID").parse();
    let header = header.map_err(|_| PluginError("'config.header_name' is not the name of a header".to_owned()))?;
    Ok(Arc::new(Correlation { header, generator: config.generator, echo: config.echo_downstream }))
}

thread_local! {
    /// Of the worker, drawn when it is first asked for.
    static WORKER: OnceCell<Uuid> = const { OnceCell::new() };
    static COUNTER: Cell<u64> = const { Cell::new(0) };
}

/// Counts the ids made by this worker, from 1.
fn next() -> u64 {
    COUNTER.with(|counter| {
        counter.set(counter.get() + 1);
        counter.get()
    })
}

impl Generator {
    fn make(self, context: &Context) -> HeaderValue {
        let id = match self {
            Self::Uuid => Uuid::new_v4().to_string(),
            Self::UuidAndCounter => {
                format!("{}#{}", WORKER.with(|worker| *worker.get_or_init(Uuid::new_v4)), next())
            }
            Self::Tracker => {
                // The context knows neither the address connected to nor the connection: the address is left open,
                // and each request counts as the only one of its connection.
                let (port, process, connection) = (context.request.port, std::process::id(), next());
                let (seconds, millis) = (context.now() / 1000, context.now() % 1000);
                format!("0.0.0.0-{port}-{process}-{connection}-1-{seconds}.{millis:03}")
            }
        };
        // Digits and hyphens are valid in a header.
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("-"))
    }
}

impl Correlation {
    /// The client's own id, unless it is empty.
    fn sent(&self, context: &Context) -> Option<HeaderValue> {
        context.request.headers.get(&self.header).filter(|value| !value.is_empty()).map(gwctl_http1::Value::to_owned)
    }
}

impl Plugin for Correlation {
    fn phases(&self) -> Phases {
        if self.echo { Phases::ACCESS | Phases::HEADER_FILTER } else { Phases::ACCESS }
    }

    fn access<'a>(&'a self, context: &'a mut Context) -> Step<'a> {
        let id = self.sent(context).unwrap_or_else(|| {
            let id = self.generator.make(context);
            context.request.headers.insert(&self.header, &id);
            id
        });
        context.slots.put(CorrelationId(id));
        Step::Next
    }

    fn header_filter(&self, context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
        // There is no id yet when a plugin before this one answered.
        let kept = context.slots.get::<CorrelationId>().map(|id| id.0.clone());
        let id = kept.or_else(|| self.sent(context)).unwrap_or_else(|| self.generator.make(context));
        if let Some(response) = &mut context.response {
            response.headers.insert(&self.header, id);
        }
        Ok(None)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::native::fixtures::{self, access, context, respond, text, with};
    use gwctl_entities::Value;
    use serde_json::json;

    fn plugin(changed: Value) -> Arc<dyn Plugin> {
        let defaults = json!({"header_name": "Kong-Request-ID", "generator": "uuid#counter", "echo_downstream": false});
        fixtures::try_build("correlation-id", defaults, changed).unwrap()
    }

    fn run(plugin: &dyn Plugin, mut context: Context) -> Context {
        assert!(access(plugin, &mut context).unwrap().is_none());
        context
    }

    fn made(changed: Value) -> String {
        text(&run(&*plugin(changed), context("GET", "/")).request.headers, "kong-request-id")
    }

    #[test]
    fn ids_of_a_worker_differ_in_their_count() {
        let (one, two) = (made(json!({})), made(json!({})));
        let ((uuid, count), (same, next)) = (one.split_once('#').unwrap(), two.split_once('#').unwrap());
        assert_eq!(uuid, same);
        assert!(Uuid::parse_str(uuid).is_ok());
        assert_eq!(next.parse::<u64>().unwrap(), count.parse::<u64>().unwrap() + 1);
    }

    #[test]
    fn workers_differ_in_their_uuid() {
        let uuid = || made(json!({})).split('#').next().unwrap().to_owned();
        assert_ne!(std::thread::spawn(uuid).join().unwrap(), uuid());
    }

    #[test]
    fn a_uuid_is_new_for_each_request() {
        let uuid = || Uuid::parse_str(&made(json!({"generator": "uuid"}))).unwrap();
        let (one, two) = (uuid(), uuid());
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 4);
    }

    #[test]
    fn a_tracker_tells_port_process_and_time() {
        let mut context = context("GET", "/");
        context.times.started_millis = 1_700_000_000_042;
        let context = run(&*plugin(json!({"generator": "tracker"})), context);
        let id = text(&context.request.headers, "kong-request-id");
        let parts: Vec<_> = id.split('-').collect();
        assert_eq!(parts.len(), 6);
        assert_eq!((parts[1], parts[5]), ("8000", "1700000000.042"));
        assert_eq!(parts[2], std::process::id().to_string());
    }

    #[test]
    fn the_id_of_the_client_is_kept_under_the_name_set() {
        let context = run(&*plugin(json!({"header_name": "X-Trace"})), with(context("GET", "/"), "x-trace", "mine"));
        assert_eq!(text(&context.request.headers, "x-trace"), "mine");
        assert_eq!(text(&context.request.headers, "kong-request-id"), "");
        assert_eq!(context.slots.get(), Some(&CorrelationId(HeaderValue::from_static("mine"))));
    }

    #[test]
    fn an_empty_id_of_the_client_is_replaced() {
        let context = run(&*plugin(json!({})), with(context("GET", "/"), "kong-request-id", ""));
        assert!(text(&context.request.headers, "kong-request-id").contains('#'));
    }

    #[test]
    fn the_response_carries_the_id_only_when_asked() {
        assert_eq!(plugin(json!({})).phases(), Phases::ACCESS);
        let plugin = plugin(json!({"echo_downstream": true}));
        assert!(plugin.phases().has(Phases::HEADER_FILTER));
        let mut context = run(&*plugin, context("GET", "/"));
        let sent = text(&context.request.headers, "kong-request-id");
        assert_eq!(text(&respond(&*plugin, &mut context, &[("kong-request-id", "theirs")]), "kong-request-id"), sent);
    }

    #[test]
    fn a_response_made_before_access_carries_an_id_too() {
        let plugin = plugin(json!({"echo_downstream": true}));
        let mut own = with(context("GET", "/"), "kong-request-id", "mine");
        assert_eq!(text(&respond(&*plugin, &mut own, &[]), "kong-request-id"), "mine");
        assert!(text(&respond(&*plugin, &mut context("GET", "/"), &[]), "kong-request-id").contains('#'));
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let error = fixtures::try_build(
            "correlation-id",
            json!({"generator": "uuid", "echo_downstream": false}),
            json!({"header_name": "a b"}),
        );
        assert!(error.err().unwrap().0.contains("config.header_name"));
    }
}
