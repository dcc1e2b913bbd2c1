//! Schemas as data: what a field may hold, read from JSON.
//!
//! One JSON form serves the bundled schema files (`schemas/`), Lua plugins' own schemas and the answers of
//! `GET /schemas/*`. Attribute names are Kong's wire names. In our files a field carries its `name` beside its
//! attributes; in Kong's shape it is an object with one member. Attributes of our own never appear in answers:
//!
//! | Attribute | Where | Meaning |
//! |---|---|---|
//! | `validator` | field | named rule of `validators`, run after the declared ones |
//! | `validator_traditional` | field | the rule in its place with router flavor `traditional` |
//! | `with_database` | field | attributes laid over on nodes that have a store and proxy |
//! | `only_flavor` | field | the field exists with this router flavor only |
//! | `default_token` | field | an absent value is drawn at random |
//! | `expand`, `convert`, `echo` | shorthand | paths it fills, conversion on the way, repeated on reads |
//! | `quoted` | entity check | order of the fields in its message |
//! | `check`, `flavors` | custom entity check | named check of `validators::entity`, router flavors that have it |
//! | `subschema_key`, `subschemas` | entity | field that picks a variant, what each variant lays over |
//!
//! A new entity is one file here and its line in `data`; a new plugin likewise.

mod data;
mod parse;
mod wire;

use crate::registry::OnDelete;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(crate) use data::{EntityFile, entity_files, plugin_files, vault_files};
pub use parse::SchemaError;
pub(crate) use parse::{FileOptions, schema_from};
pub(crate) use wire::schema_json;

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Text.
    String,
    /// Any number.
    Number,
    /// A whole number; `80.0` is one.
    Integer,
    /// True or false.
    Boolean,
    /// Ordered, duplicates allowed.
    Array,
    /// Ordered as given, duplicates dropped.
    Set,
    /// Free keys, values of one type.
    Map,
    /// Fixed members.
    Record,
    /// Reference to another entity.
    Foreign,
    /// Any JSON.
    Json,
    /// No type given (only inside conditions): every value has it.
    Any,
}

/// Patterns of which one must match, and the message when none does.
#[derive(Debug, Clone, PartialEq)]
pub struct AnyOfPatterns {
    /// Lua patterns.
    pub patterns: Vec<String>,
    /// Said instead of the general message.
    pub message: Option<String>,
}

/// One pattern with a message of its own. Patterns are Lua patterns.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// The Lua pattern.
    pub pattern: String,
    /// Said instead of the general message.
    pub message: Option<String>,
}

/// Limits on a value beyond its type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// The only value allowed; `Some(Null)`: the field must stay unset.
    pub eq: Option<Value>,
    /// A value that is not allowed.
    pub ne: Option<Value>,
    /// The values allowed.
    pub one_of: Option<Vec<Value>>,
    /// Values not allowed.
    pub not_one_of: Option<Vec<Value>>,
    /// The value must be greater.
    pub gt: Option<f64>,
    /// Both ends included.
    pub between: Option<(f64, f64)>,
    /// Exact length: bytes of text, elements of lists, members of maps.
    pub len_eq: Option<u64>,
    /// Strings without it may not be empty.
    pub len_min: Option<u64>,
    /// Greatest length.
    pub len_max: Option<u64>,
    /// Text the value begins with.
    pub starts_with: Option<String>,
    /// Lua pattern the text matches.
    pub match_: Option<String>,
    /// Lua pattern the text does not match.
    pub not_match: Option<String>,
    /// Patterns of which each matches.
    pub match_all: Vec<Pattern>,
    /// Patterns of which none matches.
    pub match_none: Vec<Pattern>,
    /// Patterns of which one matches.
    pub match_any: Option<AnyOfPatterns>,
    /// A value that must be among the elements.
    pub contains: Option<Value>,
    /// The text must compile as a regular expression.
    pub is_regex: bool,
    /// Elements may come from one of these groups only.
    pub mutually_exclusive_subsets: Vec<Vec<String>>,
    /// Message in place of the one of any failed rule.
    pub message: Option<String>,
}

/// One field of a schema.
#[derive(Debug, Clone)]
pub struct Field {
    /// Name; empty for elements, keys and values.
    pub name: String,
    /// Type of the values.
    pub kind: FieldType,
    /// Null or absent is an error, after defaults.
    pub required: bool,
    /// Value of an absent field; `Some(Null)` is the same as none.
    pub default: Option<Value>,
    /// Filled by the engine when absent: ids, times, random text.
    pub auto: bool,
    /// Text of the shape 8-4-4-4-12, kept in lower case.
    pub uuid: bool,
    /// Unix time, not negative.
    pub timestamp: bool,
    /// No two records of a workspace have the same value.
    pub unique: bool,
    /// No two records at all have the same value.
    pub unique_across_workspaces: bool,
    /// Entity a foreign field refers to.
    pub reference: Option<String>,
    /// What a delete of the referred record does; none means restrict.
    pub on_delete: Option<OnDelete>,
    /// A vault reference may stand in place of the value.
    pub referenceable: bool,
    /// Marked as secret; without effect in the open-source edition.
    pub encrypted: bool,
    /// To be replaced by a plugin's or vault's own definition.
    pub is_abstract: bool,
    /// Accepted and shown but not stored (`snis` of certificates).
    pub transient: bool,
    /// Limits on the value.
    pub rules: Rules,
    /// Elements of an array or set.
    pub elements: Option<Arc<Field>>,
    /// Keys of a map.
    pub keys: Option<Arc<Field>>,
    /// Values of a map.
    pub values: Option<Arc<Field>>,
    /// Members of a record.
    pub record: Option<Arc<Schema>>,
    /// Named rule beyond [`Rules`].
    pub validator: Option<String>,
    /// Random text drawn for an absent value.
    pub default_token: bool,
    /// Shorthand only: paths inside the same record this name stands for.
    pub expand: Vec<Vec<String>>,
    /// Shorthand only: shown on reads with the value of its replacement.
    pub echo: bool,
    /// Shorthand only: name of the conversion between old and new value.
    pub convert: Option<String>,
    /// Shorthand only: has a replacement that wins over it.
    pub deprecated: bool,
    /// Attributes as `GET /schemas` shows them, nested definitions left out.
    pub(crate) attributes: Map<String, Value>,
}

/// A check over several fields of one record.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    AtLeastOneOf(Vec<String>),
    OnlyOneOf(Vec<String>),
    Distinct(Vec<String>),
    MutuallyRequired(Vec<String>),
    MutuallyExclusive(Vec<String>),
    MutuallyExclusiveSets(String, String),
    Conditional(Box<Conditional>),
    ConditionalAtLeastOneOf(Box<ConditionalAtLeastOneOf>),
    Custom { name: String, fields: Vec<String>, run_with_invalid_fields: bool },
}

#[derive(Debug, Clone)]
pub(crate) struct Conditional {
    pub(crate) if_field: String,
    pub(crate) if_match: Field,
    pub(crate) then_field: String,
    pub(crate) then_match: Field,
    pub(crate) message: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ConditionalAtLeastOneOf {
    pub(crate) if_field: String,
    pub(crate) if_match: Field,
    pub(crate) fields: Vec<String>,
    pub(crate) message: Option<String>,
    pub(crate) otherwise: Option<(Field, Vec<String>, Option<String>)>,
}

/// Fields, shorthands and checks of an entity or record.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    fields: Vec<Arc<Field>>,
    /// The same by name, as the members of a record stand.
    by_name: Vec<Arc<Field>>,
    shorthands: Vec<Arc<Field>>,
    pub(crate) checks: Vec<Check>,
    /// Checks as `GET /schemas` shows them.
    pub(crate) checks_json: Vec<Value>,
}

impl Schema {
    pub(crate) fn new(fields: Vec<Arc<Field>>, shorthands: Vec<Arc<Field>>) -> Schema {
        let by_name = by_name(&fields);
        Schema { fields, by_name, shorthands, checks: Vec::new(), checks_json: Vec::new() }
    }

    /// Fields by name, so that they can be walked side by side with the members of a record.
    pub(crate) fn fields_by_name(&self) -> impl ExactSizeIterator<Item = &Field> {
        self.by_name.iter().map(Arc::as_ref)
    }

    /// Fields in schema order.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().map(Arc::as_ref)
    }

    /// Write-only and renamed fields.
    pub fn shorthands(&self) -> impl Iterator<Item = &Field> {
        self.shorthands.iter().map(Arc::as_ref)
    }

    /// The field of this name; shorthands are not fields.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = self.by_name.binary_search_by(|field| field.name.as_str().cmp(name)).ok()?;
        self.by_name.get(found).map(Arc::as_ref)
    }

    /// The shorthand of this name.
    pub fn shorthand(&self, name: &str) -> Option<&Field> {
        self.shorthands.iter().find(|field| field.name == name).map(Arc::as_ref)
    }

    /// The field at a dotted path through records (`config.redis.host`).
    pub fn field_at(&self, path: &str) -> Option<&Field> {
        match path.split_once('.') {
            None => self.field(path),
            Some((name, rest)) => self.field(name)?.record.as_ref()?.field_at(rest),
        }
    }

    /// This schema with the other's fields in place of its own of the same name, and the other's checks added.
    pub(crate) fn overridden_by(&self, other: &Schema) -> Schema {
        let mut merged = self.clone();
        for field in &other.fields {
            match merged.fields.iter_mut().find(|known| known.name == field.name) {
                Some(known) => *known = Arc::clone(field),
                None => merged.fields.push(Arc::clone(field)),
            }
        }
        merged.by_name = by_name(&merged.fields);
        merged.checks.extend(other.checks.iter().cloned());
        merged.checks_json.extend(other.checks_json.iter().cloned());
        merged
    }
}

/// Of fields of one name the first counts.
fn by_name(fields: &[Arc<Field>]) -> Vec<Arc<Field>> {
    let mut sorted = fields.to_vec();
    sorted.sort_by(|left, right| left.name.cmp(&right.name));
    sorted.dedup_by(|later, first| later.name == first.name);
    sorted
}
