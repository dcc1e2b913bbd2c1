//! The table as others see it: Kong's rows, and our own fleet document.

use super::own_sync::SHARED_ID;
use super::{FleetTable, Member, State};
use gwctl_admin_api::DataPlaneRow;
use gwctl_entities::fleet::{Fleet, FleetMember};
use gwctl_store::unix_millis;
use gwctl_wire::v2::Dialect;

impl FleetTable {
    /// Rows of `GET /clustering/data-planes`, ascending by id.
    pub fn rows(&self) -> Vec<DataPlaneRow> {
        let mut state = self.lock();
        self.purge(&mut state);
        let now = unix_millis() / 1000;
        let delay = self.purge_delay.as_secs();
        let recorded = state.members.iter().filter(|(_, member)| member.recorded);
        recorded.map(|(id, member)| row(id, member, now, delay)).collect()
    }

    /// Answer of `GET /gwctl/fleet`.
    pub fn fleet(&self, version: u64) -> Fleet {
        let mut state = self.lock();
        self.purge(&mut state);
        let now_millis = unix_millis();
        let items = state.members.iter().map(|(id, row)| member(id, row, &state, version, now_millis)).collect();
        let config_hash = hash_in_force(&state, version);
        Fleet { kind: Fleet::KIND.to_owned(), version, config_hash, now_millis, items }
    }
}

/// Kong's row of a node with protocol v2 has its id for a host name, and up to Kong 3.9 no end of the certificate.
fn row(id: &str, member: &Member, now: u64, purge_delay: u64) -> DataPlaneRow {
    let last_seen = member.last_seen_millis / 1000;
    let pulls = member.protocol == "v2";
    let dated = !pulls || Dialect::of(&member.version) == Dialect::Texts;
    DataPlaneRow {
        id: id.to_owned(),
        hostname: if pulls { id.to_owned() } else { member.hostname.clone() },
        ip: member.ip.clone(),
        version: member.version.clone(),
        sync_status: member.sync_status.clone(),
        config_hash: member.config_hash.clone(),
        last_seen,
        updated_at: last_seen,
        labels: (!member.labels.is_empty()).then(|| member.labels.clone()),
        certificate_expires_at: Some(member.certificate_expires_at.filter(|_| dated)),
        rpc_capabilities: member.rpc_capabilities.clone(),
        ttl: (last_seen + purge_delay).saturating_sub(now),
    }
}

/// The version a data plane has, and since when the oldest change it lacks has been waiting.
fn progress(row: &Member, state: &State, version: u64, now_millis: u64) -> (Option<u64>, Option<u64>) {
    let (applied, ready) = if row.names_versions() {
        (row.version(), None)
    } else {
        let position = state.made.iter().rposition(|payload| payload.hash.as_str() == row.config_hash);
        let missing = position.map_or_else(|| state.made.front(), |position| state.made.get(position + 1));
        let applied = position.and_then(|position| Some(state.made.get(position)?.version));
        (applied, missing.map(|payload| payload.since_millis))
    };
    if applied >= Some(version) {
        return (applied, Some(0));
    }
    // Of versions from before this process the moment is not known.
    let missing = state.committed.iter().find(|(version, _)| Some(*version) > applied);
    let waiting = missing.map(|(_, millis)| *millis).into_iter().chain(ready).min();
    (applied, waiting.map(|since| now_millis.saturating_sub(since)))
}

/// What the nodes should have: the digest where all that are connected have our own sync, else the hash of the payload.
fn hash_in_force(state: &State, version: u64) -> Option<String> {
    let connected =
        |protocol: &str| state.members.values().any(|member| member.connections > 0 && member.protocol == protocol);
    if connected("gwctl") && !connected("v1") {
        return state.digest.as_ref().filter(|(newest, _)| *newest == version).map(|(_, digest)| digest.clone());
    }
    state.made.back().filter(|_| !state.unmade).map(|made| made.hash.to_string())
}

/// What else there is to know of a node: why it is withheld the configuration, or cannot be sent it.
fn detail(row: &Member, state: &State, lacks: bool, shared_id: bool) -> Option<String> {
    let withheld = row.sync_detail.clone();
    let failed = || state.failed.clone().filter(|_| lacks && row.connections > 0 && !row.names_versions());
    withheld.or_else(failed).or_else(|| shared_id.then(|| SHARED_ID.to_owned()))
}

fn member(id: &str, row: &Member, state: &State, version: u64, now_millis: u64) -> FleetMember {
    let (applied_version, lag_millis) = progress(row, state, version, now_millis);
    let shared_id = row.shares_id(now_millis);
    FleetMember {
        id: id.to_owned(),
        name: row.hostname.clone(),
        hostname: row.hostname.clone(),
        labels: row.labels.clone(),
        address: row.ip.clone(),
        version: row.version.clone(),
        sync_status: row.sync_status.clone(),
        sync_detail: detail(row, state, applied_version < Some(version), shared_id),
        connected: row.connections > 0,
        last_error: row.last_error.clone(),
        protocol: Some(row.protocol.clone()),
        last_seen_millis: row.last_seen_millis,
        config_hash: Some(row.config_hash.clone()),
        applied_version,
        target_version: Some(version),
        lag_millis,
        certificate_expires_at: row.certificate_expires_at,
        plugins: row.plugins.clone(),
        state: Some(row.state(now_millis).to_owned()),
        protocol_reason: row.protocol_reason.map(str::to_owned),
        lags: row.lags.over(now_millis),
        stored_micros: row.stored_micros,
        active_micros: row.active_micros,
        apply_millis: row.active_micros.map(|micros| micros.div_ceil(1000)),
        refusal: row.refusal.clone(),
        shared_id,
        divergences: (row.divergences > 0).then_some(row.divergences),
        ..FleetMember::default()
    }
}
