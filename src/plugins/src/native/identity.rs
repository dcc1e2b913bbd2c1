//! What every authentication plugin does with the consumer it found.

use crate::{Context, PluginError};
use gwctl_entities::{Record, Value};
use gwctl_http1::names::{
    X_ANONYMOUS_CONSUMER, X_CONSUMER_CUSTOM_ID, X_CONSUMER_ID, X_CONSUMER_USERNAME, X_CREDENTIAL_IDENTIFIER,
};
use gwctl_http1::{Name, Value as HeaderText};
use std::sync::Arc;

/// Names the consumer in the context and to the upstream. What the client itself sent under these headers never
/// passes. `identifier` is how the upstream is told the credential.
pub(super) fn identify(
    context: &mut Context,
    consumer: Option<Arc<Record>>,
    credential: Option<Arc<Record>>,
    identifier: Option<&str>,
) {
    let told = |field: &str| consumer.as_ref().and_then(|consumer| consumer.get(field)).and_then(Value::as_str);
    tell(context, X_CONSUMER_ID, told("id"));
    tell(context, X_CONSUMER_CUSTOM_ID, told("custom_id"));
    tell(context, X_CONSUMER_USERNAME, told("username"));
    tell(context, X_CREDENTIAL_IDENTIFIER, identifier);
    tell(context, X_ANONYMOUS_CONSUMER, credential.is_none().then_some("true"));
    context.authenticate(consumer, credential);
}

fn tell(context: &mut Context, name: Name<'_>, value: Option<&str>) {
    match value.and_then(|value| HeaderText::new(value.as_bytes())) {
        Some(value) => context.request.headers.insert(name, value),
        None => _ = context.request.headers.remove(name),
    }
}

/// The consumer a credential belongs to; None when it is gone.
pub(super) fn owner(context: &Context, credential: &Record) -> Result<Option<Arc<Record>>, PluginError> {
    match credential.get("consumer").and_then(|consumer| consumer.get("id")).and_then(Value::as_str) {
        Some(id) => context.get("consumers", id).map_err(|error| PluginError(error.to_string())),
        None => Ok(None),
    }
}

/// Lets the request pass as the consumer `anonymous`, an id or a user name.
pub(super) fn identify_anonymous(context: &mut Context, anonymous: &str) -> Result<(), PluginError> {
    let by_id = if is_uuid(anonymous) { context.get("consumers", anonymous) } else { Ok(None) };
    let consumer = match by_id {
        Ok(None) => context.find("consumers", "username", anonymous),
        found => found,
    };
    let consumer = consumer.map_err(|error| PluginError(error.to_string()))?;
    if consumer.is_none() {
        return Err(PluginError(format!(
            "the anonymous consumer '{anonymous}' does not exist: create it, or name another in 'config.anonymous'"
        )));
    }
    identify(context, consumer, None, None);
    Ok(())
}

/// The shape of a UUID, hyphens included.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shape_of_a_uuid_counts_as_id() {
        assert!(is_uuid("0dc6f45b-8f8d-40d2-a504-473544ee190b"));
        assert!(!is_uuid("0dc6f45b-8f8d-40d2-a504-473544ee190"));
        assert!(!is_uuid("0dc6f45b08f8d-40d2-a504-473544ee190b"));
        assert!(!is_uuid("gdc6f45b-8f8d-40d2-a504-473544ee190b"));
    }
}
