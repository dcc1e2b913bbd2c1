//! `/clustering/*` and `/gwctl/fleet` of a control plane.

use crate::answer::{Answer, bare, unexpected};
use crate::backend::DataPlaneRow;
use crate::context::Context;
use crate::{list, node};
use gwctl_entities::{EntityError, Map, NodeKind, Record, Value};
use http::Method;
use serde_json::json;

const NEEDS_CONTROL_PLANE: &str =
    "this endpoint is only available when Kong is configured to run as Control Plane for the cluster";

fn rows(context: &Context<'_>) -> Result<Vec<DataPlaneRow>, EntityError> {
    if context.node.kind != NodeKind::ControlPlane {
        return Err(bare(400, NEEDS_CONTROL_PLANE));
    }
    context.backend.data_planes()
}

/// `GET /clustering/data-planes`.
pub(crate) fn data_planes(context: &Context<'_>) -> Result<Answer, EntityError> {
    let mut rows = rows(context)?;
    let size = list::size(&context.request.query)?;
    if let Some(offset) = context.request.query.text("offset").filter(|offset| !offset.is_empty()) {
        let content = list::token_content(offset)?;
        let from = content.get(0).and_then(Value::as_str).ok_or_else(unexpected)?;
        rows.retain(|row| row.id.as_str() >= from);
    }
    let next = rows.get(size).map(|row| {
        let token = list::token(&row.id);
        (format!("/clustering/data-planes?offset={}", list::escape(&token)), token)
    });
    rows.truncate(size);
    Ok(Answer::ok_page(list::page(rows.iter().map(shown).collect(), next)))
}

fn shown(row: &DataPlaneRow) -> Record {
    let certificate = row.certificate_expires_at.map(|end| json!({ "expiry_timestamp": end }));
    let shown = json!({
        "id": row.id,
        "hostname": row.hostname,
        "ip": row.ip,
        "version": row.version,
        "sync_status": row.sync_status,
        "config_hash": row.config_hash,
        "last_seen": row.last_seen,
        "updated_at": row.updated_at,
        "labels": row.labels,
        "cert_details": certificate,
        "rpc_capabilities": row.rpc_capabilities,
        "ttl": row.ttl,
    });
    shown.as_object().cloned().unwrap_or_default()
}

/// `/clustering/data-planes/{}/log-level`: reads, sets for a while, or puts back the level of a data plane's log. Kong 3.7 and
/// 3.8 had it.
pub(crate) fn log_level(context: &Context<'_>, id: &str) -> Result<Answer, EntityError> {
    let backend = &context.backend;
    match context.request.method {
        Method::PUT => {
            let level = node::argument(context, "current_level");
            let level = level.ok_or_else(|| bare(400, "Required parameter \"current_level\" is missing."))?;
            let seconds = node::seconds(context, "timeout")?;
            backend.data_plane_log_level(id, Some((&level, seconds)))?;
            Ok(Answer::empty(201))
        }
        Method::DELETE => {
            backend.data_plane_log_level(id, Some(("warn", 0)))?;
            Ok(Answer::empty(204))
        }
        _ => backend.data_plane_log_level(id, None).map(Answer::ok),
    }
}

/// `GET /clustering/status`, the deprecated form.
pub(crate) fn status(context: &Context<'_>) -> Result<Answer, EntityError> {
    let nodes: Map<String, Value> = rows(context)?
        .into_iter()
        .map(|row| {
            let shown = json!({
                "config_hash": row.config_hash,
                "hostname": row.hostname,
                "ip": row.ip,
                "last_seen": row.last_seen,
            });
            (row.id, shown)
        })
        .collect();
    Ok(Answer::ok(Value::Object(nodes)).with_header("deprecation", "true"))
}

/// `GET /gwctl/fleet`.
pub(crate) fn fleet(context: &Context<'_>) -> Result<Answer, EntityError> {
    if context.node.kind != NodeKind::ControlPlane {
        return Err(bare(400, NEEDS_CONTROL_PLANE));
    }
    let fleet = context.backend.fleet()?;
    serde_json::to_value(fleet).map(Answer::ok).map_err(|error| EntityError::Database(error.to_string()))
}
