//! Who sends a request, and whether that may do what it asks for.

use crate::answer::{Answer, bare};
use crate::api::{Api, reads};
use crate::context::Context;
use crate::place::Place;
use crate::request::Body;
use crate::token::{Role, TOKENS_SETTING, Token, Tokens, token_hash, token_secret};
use gwctl_entities::{EntityError, Value};
use http::{HeaderMap, Method, header};
use serde_json::json;

/// Longest name of a token.
const NAME_LIMIT: usize = 64;
/// Tokens at most: each request looks through them.
const TOKEN_LIMIT: usize = 1000;

/// Who sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Nobody is asked for a token.
    #[default]
    Open,
    /// No token, on a node that asks for one: may ask for `OPTIONS` only.
    Nobody,
    /// The bearer of a token.
    Token { id: String, name: String, role: Role },
}

impl Caller {
    /// Whether answers may hold secrets.
    pub(crate) fn sees_secrets(&self) -> bool {
        match self {
            Self::Open => true,
            Self::Nobody => false,
            Self::Token { role, .. } => *role >= Role::Write,
        }
    }
}

/// The role a request needs.
fn needed(place: Option<&Place>, method: &Method) -> Role {
    match place {
        Some(Place::Tokens | Place::Token { .. }) => Role::Operate,
        // A document with every secret in it.
        Some(Place::Config) => Role::Write,
        _ if reads(method) => Role::Read,
        Some(Place::ValidateEntity { .. }) | None => Role::Read,
        Some(place) if place.has_dry_run() => Role::Write,
        Some(_) => Role::Operate,
    }
}

/// The token a request carries.
fn secret(headers: &HeaderMap) -> Option<&str> {
    let text = |value: &'static str| headers.get(value).and_then(|value| value.to_str().ok());
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    bearer.or_else(|| text("kong-admin-token"))
}

/// Who sends the request, or the refusal. Blocking.
pub(crate) fn admit(
    api: &Api,
    headers: &HeaderMap,
    method: &Method,
    path: &str,
    place: Option<&Place>,
) -> Result<Caller, Answer> {
    if !api.authentication {
        return Ok(Caller::Open);
    }
    if *method == Method::OPTIONS {
        // Browsers ask without credentials whether they may send some.
        return Ok(Caller::Nobody);
    }
    let refused =
        |message: &str| Answer::message(401, message).with_header("www-authenticate", "Bearer realm=\"gwctl\"");
    let Some(secret) = secret(headers) else {
        return Err(refused("Unauthorized: this Admin API needs a token, send `Authorization: Bearer <token>`"));
    };
    let tokens = tokens(api.backend.as_ref())?;
    let Some(token) = tokens.find(secret, api.backend.now_millis()) else {
        return Err(refused("Unauthorized: the token is unknown, revoked or past its end"));
    };
    let needed = needed(place, method);
    if token.role < needed {
        let (name, has, needs) = (&token.name, token.role.as_str(), needed.as_str());
        let message = format!("Forbidden: token '{name}' has the role {has}, {method} {path} needs {needs}");
        return Err(Answer::message(403, &message));
    }
    Ok(Caller::Token { id: token.id.clone(), name: token.name.clone(), role: token.role })
}

/// Whether the caller may still come in: an answer that goes on for hours must not outlive its token. Blocking.
pub(crate) fn is_still_admitted(backend: &dyn crate::Backend, caller: &Caller) -> bool {
    match caller {
        Caller::Open => true,
        Caller::Nobody => false,
        Caller::Token { id, .. } => {
            let now = backend.now_millis();
            let valid = |tokens: Tokens| tokens.0.iter().any(|token| token.id == *id && token.is_valid(now));
            tokens(backend).is_ok_and(valid)
        }
    }
}

fn tokens(backend: &dyn crate::Backend) -> Result<Tokens, EntityError> {
    Tokens::of_setting(backend.setting(TOKENS_SETTING)?.as_deref())
}

fn shown(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "created_at_millis": token.created_at_millis,
        "created_by": token.created_by,
        "expires_at_millis": token.expires_at_millis,
    })
}

/// `/gwctl/tokens`.
pub(crate) fn collection(context: &Context<'_>) -> Result<Answer, EntityError> {
    if context.request.method == Method::POST {
        return issue(context);
    }
    let tokens = tokens(context.backend)?;
    Ok(Answer::ok(json!({ "data": tokens.0.iter().map(shown).collect::<Vec<_>>() })))
}

/// What a new token is to be.
struct Wanted {
    name: String,
    role: Role,
    seconds: Option<u64>,
}

impl Wanted {
    /// Every mistake of the body at once.
    fn read(context: &Context<'_>) -> Result<Self, EntityError> {
        let Body::Json(body) = &context.request.body else {
            return Err(bare(400, "expected a JSON object with `name` and `role`"));
        };
        let mut mistakes = Vec::new();
        let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() || name.chars().count() > NAME_LIMIT || name.chars().any(char::is_control) {
            mistakes.push(format!("name: expected a text of 1 to {NAME_LIMIT} characters"));
        }
        let role = body.get("role").and_then(Value::as_str).and_then(Role::parse);
        if role.is_none() {
            mistakes.push("role: expected one of read, write, operate".to_owned());
        }
        let seconds = match body.get("expires_in") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64().filter(|seconds| (1..=1 << 40).contains(seconds)) {
                Some(seconds) => Some(seconds),
                None => {
                    mistakes.push("expires_in: expected a number of seconds".to_owned());
                    None
                }
            },
        };
        let known = ["name", "role", "expires_in"];
        mistakes.extend(
            body.keys().filter(|name| !known.contains(&name.as_str())).map(|name| format!("{name}: unknown field")),
        );
        match role {
            Some(role) if mistakes.is_empty() => Ok(Self { name: name.to_owned(), role, seconds }),
            _ => Err(bare(400, mistakes.join("; "))),
        }
    }
}

fn issue(context: &Context<'_>) -> Result<Answer, EntityError> {
    let wanted = Wanted::read(context)?;
    let _changing = context.memory.changing_tokens();
    let mut tokens = tokens(context.backend)?;
    let now = context.backend.now_millis();
    // A name that has ended may be given again.
    tokens.0.retain(|token| token.is_valid(now) || token.name != wanted.name);
    if tokens.0.iter().any(|token| token.name == wanted.name) {
        return Err(bare(
            409,
            format!("there is a token named '{}' already: revoke it or choose another name", wanted.name),
        ));
    }
    if tokens.0.len() >= TOKEN_LIMIT {
        // Kept until now only to be seen in the list.
        tokens.0.retain(|token| token.is_valid(now));
    }
    if tokens.0.len() >= TOKEN_LIMIT {
        return Err(bare(409, format!("there are {TOKEN_LIMIT} tokens already: revoke some")));
    }
    let secret = token_secret(&context.backend.new_token());
    let token = Token {
        id: context.backend.new_uuid(),
        name: wanted.name,
        role: wanted.role,
        hash: token_hash(&secret),
        created_at_millis: now,
        created_by: context.request.origin.who.clone(),
        expires_at_millis: wanted.seconds.map(|seconds| now.saturating_add(seconds.saturating_mul(1000))),
    };
    let mut answer = shown(&token);
    answer["token"] = Value::from(secret);
    tokens.0.push(token.clone());
    context.backend.set_setting(TOKENS_SETTING, &tokens.to_setting()?)?;
    audit(context, "token made", &token);
    Ok(Answer::json(201, answer).with_header("cache-control", "no-store"))
}

/// `/gwctl/tokens/{id or name}`.
pub(crate) fn item(context: &Context<'_>, key: &str) -> Result<Answer, EntityError> {
    let _changing = context.memory.changing_tokens();
    let mut tokens = tokens(context.backend)?;
    let found = tokens.0.iter().position(|token| token.id == key || token.name == key);
    let Some(found) = found else { return Err(crate::answer::not_found()) };
    if context.request.method != Method::DELETE {
        return Ok(Answer::ok(shown(&tokens.0[found])));
    }
    let token = tokens.0.remove(found);
    if context.asks_for_tokens && !tokens.has_operator_without(&token.id, context.backend.now_millis()) {
        return Err(bare(409, "the last token with the role operate stays: make another one first"));
    }
    context.backend.set_setting(TOKENS_SETTING, &tokens.to_setting()?)?;
    audit(context, "token revoked", &token);
    Ok(Answer::empty(204))
}

/// Tokens are no configuration and have no version: the log of the node keeps their trail.
fn audit(context: &Context<'_>, what: &str, token: &Token) {
    let origin = &context.request.origin;
    tracing::info!(token = token.name, role = token.role.as_str(), who = origin.who, from = origin.from, "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Client, Fake};
    use crate::serve::ServeOptions;
    use crate::{Backend, Face};
    use gwctl_entities::NodeKind;
    use std::sync::Arc;

    fn guarded() -> Client {
        let mut client = Client::of(NodeKind::ControlPlane);
        let backend: Arc<dyn Backend> = Arc::new(Fake::new(NodeKind::ControlPlane));
        let options = ServeOptions { authentication: true, ..ServeOptions::default() };
        client.api = Api::new(Face::Admin, backend, &options);
        client
    }

    fn admitted(client: &Client, secret: &str, method: Method, path: &str) -> Result<Caller, u16> {
        let mut headers = HeaderMap::new();
        if !secret.is_empty() {
            headers.insert(header::AUTHORIZATION, format!("Bearer {secret}").parse().unwrap());
        }
        let segments = crate::request::segments(path).unwrap();
        admit(&client.api, &headers, &method, path, client.api.place(&segments).as_ref())
            .map_err(|answer| answer.status)
    }

    #[test]
    fn each_role_may_do_what_the_one_before_may() {
        let client = guarded();
        let token = |name: &str, role: &str| {
            let made = client.expect(201, "POST", "/gwctl/tokens", json!({"name": name, "role": role}));
            made["token"].as_str().unwrap().to_owned()
        };
        let secrets = [token("r", "read"), token("w", "write"), token("o", "operate")];
        let may = |method: Method, path: &str| {
            let each = |secret: &String| admitted(&client, secret, method.clone(), path).is_ok();
            secrets.iter().map(each).collect::<Vec<_>>()
        };
        assert_eq!(may(Method::GET, "/services"), [true, true, true]);
        assert_eq!(may(Method::POST, "/schemas/services/validate"), [true, true, true]);
        for (method, path) in
            [(Method::DELETE, "/services/a"), (Method::POST, "/gwctl/changes"), (Method::GET, "/config")]
        {
            assert_eq!(may(method, path), [false, true, true], "{path}");
        }
        for (method, path) in
            [(Method::PUT, "/debug/node/log-level/info"), (Method::GET, "/gwctl/tokens"), (Method::DELETE, "/cache")]
        {
            assert_eq!(may(method, path), [false, false, true], "{path}");
        }
        assert_eq!(admitted(&client, "", Method::GET, "/services"), Err(401));
        assert_eq!(admitted(&client, "gwctl_wrong", Method::GET, "/services"), Err(401));
        assert_eq!(admitted(&client, &secrets[0], Method::DELETE, "/services/a"), Err(403));
        assert_eq!(admitted(&client, "", Method::OPTIONS, "/services"), Ok(Caller::Nobody));
        let admitted = admitted(&client, &secrets[1], Method::PUT, "/services/a");
        assert!(matches!(admitted, Ok(Caller::Token { name, role: Role::Write, .. }) if name == "w"));
    }

    #[test]
    fn a_secret_is_shown_once_and_a_revoked_token_is_refused() {
        let client = guarded();
        client.expect(201, "POST", "/gwctl/tokens", json!({"name": "keeper", "role": "operate"}));
        let made = client.expect(201, "POST", "/gwctl/tokens", json!({"name": "ci", "role": "operate"}));
        let secret = made["token"].as_str().unwrap();
        assert!(admitted(&client, secret, Method::GET, "/").is_ok());
        let (status, listed) = client.get("/gwctl/tokens");
        assert_eq!((status, listed["data"].as_array().unwrap().len()), (200, 2));
        let text = listed.to_string();
        assert!(!text.contains(secret) && !text.contains(&token_hash(secret)), "{text}");
        client.expect(409, "POST", "/gwctl/tokens", json!({"name": "ci", "role": "read"}));
        assert_eq!(client.send("DELETE", "/gwctl/tokens/ci", None).0, 204);
        assert_eq!(admitted(&client, secret, Method::GET, "/"), Err(401));
        assert_eq!(client.send("DELETE", "/gwctl/tokens/ci", None).0, 404);
        assert_eq!(client.send("DELETE", "/gwctl/tokens/keeper", None).0, 409, "nobody could make tokens any more");
    }

    #[test]
    fn tokens_that_have_ended_leave_room_for_others() {
        let client = guarded();
        let backend = client.api.backend.as_ref();
        let kept = |number: usize, end: Option<u64>| Token {
            id: number.to_string(),
            name: format!("t{number}"),
            role: Role::Read,
            hash: String::new(),
            created_at_millis: 0,
            created_by: String::new(),
            expires_at_millis: end,
        };
        let fill = |end: Option<u64>| {
            let full = Tokens((0..TOKEN_LIMIT).map(|number| kept(number, end)).collect());
            backend.set_setting(TOKENS_SETTING, &full.to_setting().unwrap()).unwrap();
        };
        fill(Some(0));
        client.expect(201, "POST", "/gwctl/tokens", json!({"name": "new", "role": "read"}));
        fill(None);
        client.expect(409, "POST", "/gwctl/tokens", json!({"name": "new", "role": "read"}));
    }

    #[test]
    fn every_mistake_in_a_wish_for_a_token_is_told_at_once() {
        let wish = json!({"role": "admin", "expires_in": -1, "more": 1});
        let refused = guarded().expect(400, "POST", "/gwctl/tokens", wish);
        let expected = "name: expected a text of 1 to 64 characters; role: expected one of read, write, operate; expires_in: expected a number of seconds; more: unknown field";
        assert_eq!(refused["message"], expected);
    }
}
