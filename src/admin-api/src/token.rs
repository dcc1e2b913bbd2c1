//! Tokens of the Admin API: who may come in, and what each may do.
//!
//! A token is 32 random letters and digits behind `gwctl_`. Only its SHA-256 is kept: a secret of 190 random bits needs
//! no slow hash, and looking one up costs the same whether it exists or not.

use gwctl_entities::EntityError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Setting of the store that holds the tokens.
pub const TOKENS_SETTING: &str = "admin_tokens";

/// What a token may do; each role may do what the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See everything but secrets and tokens.
    Read,
    /// Change the configuration, see secrets.
    Write,
    /// Act on nodes, and make and revoke tokens.
    Operate,
}

impl Role {
    /// The role of this word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            "operate" => Some(Self::Operate),
            _ => None,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Operate => "operate",
        }
    }
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// UUID, to revoke it by.
    pub id: String,
    /// Name shown in the history; no two tokens have the same.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the secret, hexadecimal.
    pub hash: String,
    /// When it was made, Unix milliseconds.
    pub created_at_millis: u64,
    /// Who made it.
    pub created_by: String,
    /// When it ends, Unix milliseconds; None: never.
    #[serde(default)]
    pub expires_at_millis: Option<u64>,
}

impl Token {
    /// Whether it is still good.
    pub fn is_valid(&self, now_millis: u64) -> bool {
        self.expires_at_millis.is_none_or(|end| now_millis < end)
    }
}

/// Hexadecimal SHA-256.
pub fn token_hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The secret of a new token, from 32 random letters and digits.
pub fn token_secret(random: &str) -> String {
    format!("gwctl_{random}")
}

/// Every token of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub Vec<Token>);

impl Tokens {
    /// Reads the setting.
    pub fn of_setting(text: Option<&str>) -> Result<Self, EntityError> {
        let Some(text) = text else { return Ok(Self::default()) };
        serde_json::from_str(text).map_err(|error| EntityError::Database(format!("the tokens are unreadable: {error}")))
    }

    /// The text of the setting.
    pub fn to_setting(&self) -> Result<String, EntityError> {
        serde_json::to_string(self).map_err(|error| EntityError::Database(error.to_string()))
    }

    /// The valid token with this secret.
    pub fn find(&self, secret: &str, now_millis: u64) -> Option<&Token> {
        let hash = token_hash(secret);
        self.0.iter().find(|token| token.hash == hash && token.is_valid(now_millis))
    }

    /// Whether anybody could still make tokens if this one were gone.
    pub fn has_operator_without(&self, id: &str, now_millis: u64) -> bool {
        self.0.iter().any(|token| token.id != id && token.role == Role::Operate && token.is_valid(now_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_secret_until_it_ends_and_never_by_its_hash() {
        let secret = token_secret("abc");
        let token = Token {
            id: "1".to_owned(),
            name: "ci".to_owned(),
            role: Role::Write,
            hash: token_hash(&secret),
            created_at_millis: 0,
            created_by: String::new(),
            expires_at_millis: Some(100),
        };
        let tokens = Tokens(vec![token.clone()]);
        assert_eq!(tokens.find(&secret, 99).map(|token| &*token.name), Some("ci"));
        assert_eq!(tokens.find(&secret, 100), None);
        assert_eq!(tokens.find(&token.hash, 0), None);
        assert_eq!(Tokens::of_setting(Some(&tokens.to_setting().unwrap())), Ok(tokens));
    }

    #[test]
    fn a_hash_is_plain_sha_256() {
        assert_eq!(token_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
