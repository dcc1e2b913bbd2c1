//! The first token of a node whose Admin API asks for tokens: written to a file that only its owner reads.

use gwctl_admin_api::{Role, TOKENS_SETTING, Token, Tokens, token_hash, token_secret};
use gwctl_entities::{EntityError, Fill};
use gwctl_store::{Store, SystemFill, unix_millis};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the file below the prefix.
const FILE: &str = "admin-token";

/// Why there is no first token.
#[derive(Debug, thiserror::Error)]
pub enum FirstTokenError {
    /// The file cannot be written.
    #[error("cannot write the first token of the Admin API to {path}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The store fails.
    #[error("the store does not answer")]
    Store(#[from] EntityError),
}

/// Makes a token with the role operate when no valid one is there; the file it was written to, mode 600.
///
/// The file comes first: a token that nobody knows would keep everybody out.
pub fn first_token(store: &dyn Store, prefix: &Path) -> Result<Option<PathBuf>, FirstTokenError> {
    let mut tokens = Tokens::of_setting(store.setting(TOKENS_SETTING)?.as_deref())?;
    let now = unix_millis();
    if tokens.has_operator_without("", now) {
        return Ok(None);
    }
    let secret = token_secret(&SystemFill.token());
    let path = prefix.join(FILE);
    write(&path, &secret).map_err(|source| FirstTokenError::Io { path: path.clone(), source })?;
    tokens.0.retain(|token| token.name != "first");
    tokens.0.push(Token {
        id: SystemFill.uuid(),
        name: "first".to_owned(),
        role: Role::Operate,
        hash: token_hash(&secret),
        created_at_millis: now,
        created_by: "gwctl start".to_owned(),
        expires_at_millis: None,
    });
    store.set_setting(TOKENS_SETTING, Some(&tokens.to_setting()?))?;
    Ok(Some(path))
}

/// A new file in place of any old one: an old one may be readable by others.
fn write(path: &Path, secret: &str) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use gwctl_entities::{NodeKind, Registry, RegistryOptions};
    use gwctl_store::{LmdbOptions, LmdbStore};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    #[test]
    fn the_first_token_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let kind = NodeKind::ControlPlane;
        let options = RegistryOptions { kind, router_flavor: "traditional_compatible".to_owned(), plugins: None };
        let registry = Arc::new(Registry::bundled(&options));
        let store = LmdbStore::open(&folder.path().join("store"), registry, LmdbOptions::default()).unwrap();
        std::fs::write(folder.path().join(FILE), "left by an older node").unwrap();
        let path = first_token(&store, folder.path()).unwrap().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let secret = std::fs::read_to_string(&path).unwrap();
        let tokens = Tokens::of_setting(store.setting(TOKENS_SETTING).unwrap().as_deref()).unwrap();
        assert_eq!(tokens.find(secret.trim(), 0).map(|token| token.role), Some(Role::Operate));
        assert_eq!(first_token(&store, folder.path()).unwrap(), None);
    }
}
