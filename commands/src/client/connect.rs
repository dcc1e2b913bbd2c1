//! From flags to a client, and from its errors to failures.

use super::args::ConnectArgs;
use crate::failure::{Failure, GUARD, NOT_ALLOWED, UNREACHABLE, USAGE};
use gwctl_admin_client::{Client, ClientError, Options, Token};
use gwctl_entities::{NodeKind, Registry, RegistryOptions, Value};
use std::future::Future;
use std::path::Path;
use std::time::Duration;

/// Limit of each request where no flag gives another.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// A client of the Admin API that the flags name.
pub fn client(args: &ConnectArgs) -> Result<Client, Failure> {
    let options = Options {
        timeout: args.timeout.unwrap_or(REQUEST_LIMIT),
        token: token(args)?,
        authorities: args.cacert.as_ref().map(|path| read(path, "--cacert")).transpose()?,
        insecure: args.insecure,
        ..Options::of(&args.addr)
    };
    Client::new(&options).map_err(|error| failure(&error))
}

/// The token of the file, else of the environment; never of a flag, where others would see it.
fn token(args: &ConnectArgs) -> Result<Option<Token>, Failure> {
    match &args.token_file {
        Some(path) => {
            let text = read(path, "--token-file")?;
            Ok(Some(Token::new(&String::from_utf8_lossy(&text))))
        }
        None => Ok(std::env::var("GWCTL_TOKEN").ok().filter(|token| !token.is_empty()).map(|token| Token::new(&token))),
    }
}

fn read(path: &Path, flag: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::because(format!("cannot read {}", path.display()), &error)
            .hint(format!("{flag} takes a file that can be read"))
    })
}

/// Runs a command to its end.
///
/// Ctrl-C keeps its default meaning: it ends the process at once, also while a question or stdin is waited for, and
/// the shell sees 130. Every request is whole or absent at the control plane, so nothing needs to be put back.
pub fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::because("cannot start the runtime", &error))?.block_on(work)
}

/// The failure of a request: 69 when the control plane could not be asked, its fields one per line when it refused.
pub fn failure(error: &ClientError) -> Failure {
    let mut text = error.to_string();
    if let ClientError::PeerRefused { refusal, .. } = error {
        for line in super::mistakes::lines(&Value::Object(refusal.fields.clone()), &|path| path.join(".")) {
            text += &format!("\n  {line}");
        }
    }
    let mut failure = Failure::new(gwctl_tui::format::plain_lines(&text));
    if let Some(hint) = error.hint() {
        failure = failure.hint(hint);
    }
    match error {
        ClientError::PeerUnreachable { .. } | ClientError::PeerSilent { .. } => failure.code(UNREACHABLE),
        ClientError::ConfigAddress { .. } | ClientError::ConfigUserinfo { .. } | ClientError::ConfigOption { .. } => {
            failure.code(USAGE)
        }
        ClientError::PeerRefused { status: 401 | 403, .. } => failure.code(NOT_ALLOWED),
        ClientError::PeerRefused { status: 412, .. } => failure.code(GUARD),
        _ => failure,
    }
}

/// What the node says of itself, as far as it matters here.
pub struct Node {
    pub registry: Registry,
    /// Its `router_flavor`.
    pub flavor: String,
    /// `postgres`, `lmdb`, `off` ...
    pub database: String,
}

/// Reads the node's own word and the schemas that go with it.
pub async fn node(client: &Client) -> Result<Node, Failure> {
    let root = client.node().await.map_err(|error| failure(&error))?;
    let setting = |name: &str| root.get("configuration").and_then(|all| all.get(name)).and_then(Value::as_str);
    let flavor = setting("router_flavor").unwrap_or("traditional_compatible");
    let flavor = flavor.to_owned();
    Ok(Node { registry: registry(&flavor), flavor, database: setting("database").unwrap_or("postgres").to_owned() })
}

/// All bundled schemas for a router flavor.
pub fn registry(flavor: &str) -> Registry {
    let router_flavor = flavor.to_owned();
    Registry::bundled(&RegistryOptions { kind: NodeKind::ControlPlane, router_flavor, plugins: None })
}
