//! `/status`, `/status/ready` and `/status/dns`, on the Admin and on the Status API.

use crate::answer::{Answer, bare};
use crate::backend::StatusFacts;
use crate::context::Context;
use crate::node::argument;
use gwctl_entities::{EntityError, Map, Value};
use http::Method;
use serde_json::json;

/// How sizes are written.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SizeForm {
    /// Bytes per unit and its sign; None for plain numbers of bytes.
    unit: Option<(f64, &'static str)>,
    decimals: usize,
}

impl SizeForm {
    fn parse(unit: Option<&str>, scale: Option<&str>) -> Result<Self, String> {
        let unit = match unit.unwrap_or("m") {
            "b" | "B" => None,
            "k" | "K" => Some((1024.0, "KiB")),
            "m" | "M" => Some((1_048_576.0, "MiB")),
            "g" | "G" => Some((1_073_741_824.0, "GiB")),
            other => return Err(format!("invalid unit '{other}' (expected 'k/K', 'm/M', or 'g/G')")),
        };
        // More decimals than a double has mean nothing; Kong takes a scale it cannot read as 2.
        if scale.and_then(|text| text.trim().parse::<f64>().ok()).is_some_and(|scale| scale < 0.0) {
            return Err("scale must be equal or greater than 0".to_owned());
        }
        let decimals = scale.and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(2).min(20);
        Ok(Self { unit, decimals })
    }

    fn write(self, bytes: u64) -> Value {
        match self.unit {
            None => Value::from(bytes),
            Some((per_unit, sign)) => Value::from(format!("{:.*} {sign}", self.decimals, bytes as f64 / per_unit)),
        }
    }
}

/// `GET /status`.
pub(crate) fn status(context: &Context<'_>) -> Result<Answer, EntityError> {
    let (unit, scale) = (argument(context, "unit"), argument(context, "scale"));
    let form = SizeForm::parse(unit.as_deref(), scale.as_deref()).map_err(|message| bare(400, message))?;
    let facts = context.backend.status();
    let mut body = Map::new();
    body.insert("memory".to_owned(), memory(&facts, form));
    body.insert(
        "server".to_owned(),
        json!({
            "connections_accepted": facts.connections_accepted,
            "connections_active": facts.connections_active,
            "connections_handled": facts.connections_handled,
            "connections_reading": facts.connections_reading,
            "connections_waiting": facts.connections_waiting,
            "connections_writing": facts.connections_writing,
            "total_requests": facts.total_requests,
        }),
    );
    if let Some(reachable) = facts.database_reachable {
        body.insert("database".to_owned(), json!({ "reachable": reachable }));
    }
    if let Some(hash) = facts.configuration_hash {
        body.insert("configuration_hash".to_owned(), Value::from(hash));
    }
    Ok(Answer::ok(Value::Object(body)))
}

fn memory(facts: &StatusFacts, form: SizeForm) -> Value {
    let workers: Vec<Value> = facts
        .worker_heaps
        .iter()
        .map(|(pid, bytes)| json!({"pid": pid, "http_allocated_gc": form.write(*bytes)}))
        .collect();
    let shared: Map<String, Value> = facts
        .shared_memory
        .iter()
        .map(|(name, capacity, used)| {
            (name.clone(), json!({"capacity": form.write(*capacity), "allocated_slabs": form.write(*used)}))
        })
        .collect();
    json!({"workers_lua_vms": workers, "lua_shared_dicts": shared})
}

/// `/status/ready` of the Status API.
pub(crate) fn ready(context: &Context<'_>) -> Answer {
    if context.request.method == Method::POST {
        return match argument(context, "status").as_deref() {
            Some("draining") => {
                context.backend.drain();
                Answer::empty(204)
            }
            other => {
                let given = other.unwrap_or_default();
                Answer::message(400, &format!("invalid status: '{given}' (expected 'draining')"))
            }
        };
    }
    match context.backend.readiness() {
        Ok(()) => Answer::message(200, "ready"),
        Err(reason) => Answer::message(503, &reason),
    }
}

/// `GET /status/dns`: statistics of a resolver this node does not have.
pub(crate) fn dns() -> Answer {
    Answer::message(501, "not implemented with the legacy DNS client")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(unit: Option<&str>, scale: Option<&str>, bytes: u64) -> Result<Value, String> {
        SizeForm::parse(unit, scale).map(|form| form.write(bytes))
    }

    #[test]
    fn sizes_are_written_in_the_unit_and_scale_asked_for() {
        assert_eq!(written(None, None, 262_144), Ok(json!("0.25 MiB")));
        assert_eq!(written(Some("k"), Some("0"), 5 * 1024), Ok(json!("5 KiB")));
        assert_eq!(written(Some("g"), Some("3"), 1 << 30), Ok(json!("1.000 GiB")));
        assert_eq!(written(Some("b"), Some("0"), 40_960), Ok(json!(40_960)));
        assert!(written(Some("x"), None, 1).is_err() && written(None, Some("-1"), 1).is_err());
    }

    #[test]
    fn a_scale_beyond_reason_is_bounded() {
        assert!(written(None, Some("4000000000"), 1).is_ok_and(|text| text.to_string().len() < 40));
    }
}
