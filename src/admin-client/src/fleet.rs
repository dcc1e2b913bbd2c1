//! The fleet, of gwctl or of a plain Kong.

use crate::{Client, ClientError, ListQuery};
use gwctl_entities::fleet::{Fleet, FleetMember};
use gwctl_entities::{Record, Value};
use reqwest::Method;
use reqwest::header::DATE;
use std::time::{SystemTime, UNIX_EPOCH};

/// Silence after which a data plane of a plain Kong, which does not tell of connections, counts as disconnected.
const DISCONNECTED_MILLIS: u64 = 90_000;

impl Client {
    /// `GET /gwctl/fleet`; of a Kong, which has no such endpoint, as much as `GET /clustering/data-planes` tells.
    ///
    /// A Kong's own version and hash are unknown: version 0, no hash.
    pub async fn fleet(&self) -> Result<Fleet, ClientError> {
        const PATH: &str = "/gwctl/fleet";
        match self.answer(Method::GET, PATH, None).await {
            Ok(response) => self.read(PATH, response).await,
            Err(error) if error.status() == Some(404) => match self.kong_fleet().await {
                Err(error) if matches!(error.status(), Some(400 | 404)) => {
                    Err(ClientError::PeerRole { address: self.address().to_owned() })
                }
                fleet => fleet,
            },
            Err(error) if error.status() == Some(400) => {
                Err(ClientError::PeerRole { address: self.address().to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// Every row of `GET /clustering/data-planes`.
    pub async fn data_planes(&self) -> Result<Vec<Record>, ClientError> {
        self.list("/clustering/data-planes", &ListQuery::default()).await
    }

    async fn kong_fleet(&self) -> Result<Fleet, ClientError> {
        let now_millis = self.clock().await?;
        let rows = self.data_planes().await?;
        let mut items: Vec<FleetMember> = rows.iter().map(|row| member(row, now_millis)).collect();
        items.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(Fleet { kind: Fleet::KIND.to_owned(), version: 0, config_hash: None, now_millis, items })
    }

    /// The control plane's clock from the `Date` of an answer; this machine's where it sends none.
    async fn clock(&self) -> Result<u64, ClientError> {
        let response = self.answer(Method::GET, "/clustering/data-planes?size=1", None).await?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).and_then(date_seconds);
        let own = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(date.unwrap_or_else(own) * 1000)
    }
}

fn member(row: &Record, now_millis: u64) -> FleetMember {
    let text = |field: &str| row.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let last_seen_millis = row.get("last_seen").and_then(Value::as_u64).unwrap_or_default() * 1000;
    let labels = row.get("labels").and_then(Value::as_object).into_iter().flatten();
    let expiry = row.get("cert_details").and_then(|details| details.get("expiry_timestamp"));
    let hash = text("config_hash");
    FleetMember {
        id: text("id"),
        name: text("hostname"),
        hostname: text("hostname"),
        labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
        address: text("ip"),
        version: text("version"),
        sync_status: text("sync_status"),
        connected: now_millis.saturating_sub(last_seen_millis) <= DISCONNECTED_MILLIS,
        last_seen_millis,
        config_hash: (!hash.is_empty()).then_some(hash),
        certificate_expires_at: expiry.and_then(Value::as_u64),
        ..FleetMember::default()
    }
}

/// Unix seconds of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn date_seconds(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = date.strip_suffix(" GMT")?.split_once(", ")?.1.split([' ', ':']);
    let mut next = || parts.next();
    let day: u64 = next()?.parse().ok()?;
    let name = next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as u64 + 1;
    let year: u64 = next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let (hour, minute, second): (u64, u64, u64) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    if !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days of the civil calendar, counted from March so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}
