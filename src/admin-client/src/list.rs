//! Lists, page by page.

use crate::{Client, ClientError};
use gwctl_entities::{Record, Value};
use reqwest::Method;
use serde::Deserialize;

/// Rows asked for at once: the most an Admin API gives.
pub const PAGE_SIZE: usize = 1000;

/// What a list asks for.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Only rows that have all of these tags.
    pub tags: Vec<String>,
}

#[derive(Deserialize)]
struct PageBody {
    data: Vec<Record>,
    /// Absent or null on the last page.
    #[serde(default)]
    offset: Option<Value>,
}

impl Client {
    /// Every row of a collection (`/services`, `/upstreams/{id}/targets`), all pages.
    pub async fn list(&self, path: &str, query: &ListQuery) -> Result<Vec<Record>, ClientError> {
        self.list_pages(path, query, &mut |_| ()).await
    }

    /// Like [`Client::list`]; tells the number of rows after each page.
    pub async fn list_pages(
        &self,
        path: &str,
        query: &ListQuery,
        progress: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Vec<Record>, ClientError> {
        let mut rows = Vec::new();
        let mut offset: Option<String> = None;
        loop {
            let page_path = page_path(path, query, offset.as_deref());
            let page: PageBody = self.read(&page_path, self.answer(Method::GET, &page_path, None).await?).await?;
            rows.extend(page.data);
            progress(rows.len());
            let next = page.offset.as_ref().and_then(Value::as_str).map(str::to_owned);
            match next {
                None => return Ok(rows),
                Some(next) if Some(&next) == offset.as_ref() => {
                    return Err(self.strange(path, "the same page came twice".to_owned()));
                }
                Some(next) => offset = Some(next),
            }
        }
    }
}

fn page_path(path: &str, query: &ListQuery, offset: Option<&str>) -> String {
    let mut page = format!("{path}?size={PAGE_SIZE}");
    if !query.tags.is_empty() {
        let tags: Vec<String> = query.tags.iter().map(|tag| escape(tag)).collect();
        page += &format!("&tags={}", tags.join(","));
    }
    if let Some(offset) = offset {
        page += &format!("&offset={}", escape(offset));
    }
    page
}

/// A text as one value of a query, or one segment of a path.
pub fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

impl Client {
    /// One record by name or id; None when there is none.
    pub async fn record(&self, collection: &str, name_or_id: &str) -> Result<Option<Value>, ClientError> {
        self.find(&format!("/{collection}/{}", escape(name_or_id))).await
    }
}
