//! The configuration of a node without a store of its own: replaced as a whole, known by its hash.

use gwctl_admin_api::{DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions};
use gwctl_declarative::{
    EMPTY_HASH, Limits, LoadOptions, Loaded, Mode, Table, TextForm, config_answer, export_text, load, object_hash,
    parse, text_hash,
};
use gwctl_entities::{EntityError, Map, Value};
use gwctl_store::{Origin, Store, SystemFill};
use std::sync::{Mutex, PoisonError};

/// Setting of the store that holds the hash of the configuration in force.
const SETTING: &str = "declarative_hash";

/// Hash of the configuration in force; loading one at a time.
pub struct DeclarativeState {
    hash: Mutex<Option<String>>,
    loading: Mutex<()>,
}

impl DeclarativeState {
    /// The state as it was left: the hash of what the store holds.
    pub fn open(store: &dyn Store) -> Result<Self, EntityError> {
        Ok(Self { hash: Mutex::new(store.setting(SETTING)?), loading: Mutex::new(()) })
    }

    /// Hash of the configuration in force; 32 zeros when there is none.
    pub fn hash(&self) -> String {
        self.current().unwrap_or_else(|| EMPTY_HASH.to_owned())
    }

    /// Whether a configuration is in force, in Kong's words when not.
    pub fn readiness(&self) -> Result<(), String> {
        match self.current() {
            None => Err("no configuration available (configuration hash is not present)".to_owned()),
            Some(hash) if hash == EMPTY_HASH => {
                Err("no configuration available (empty configuration present)".to_owned())
            }
            Some(_) => Ok(()),
        }
    }

    fn current(&self) -> Option<String> {
        self.hash.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads a document in place of everything there was, or refuses it and changes nothing.
    pub fn load(
        &self,
        store: &dyn Store,
        document: DeclarativeDocument,
        options: DeclarativeOptions,
    ) -> Result<DeclarativeLoaded, EntityError> {
        let Ok(_one_at_a_time) = self.loading.try_lock() else {
            return Err(EntityError::Bare {
                status: 429,
                message: "Currently loading previous configuration".to_owned(),
            });
        };
        let (text, value) = match document {
            DeclarativeDocument::Parsed(value) => (None, value),
            DeclarativeDocument::Text(text) => {
                if options.check_hash && self.current().as_deref() == Some(&text_md5(&text)) {
                    return Ok(DeclarativeLoaded::Unchanged);
                }
                let value = parse(&text, TextForm::Auto, &Limits::default()).map_err(unreadable)?;
                (Some(text), value)
            }
        };
        let how = LoadOptions { flatten_errors: options.flatten_errors, ..LoadOptions::of(Mode::DbLess) };
        let loaded = load(store.registry(), value, &how, &mut SystemFill)?;
        let hash = match &text {
            Some(text) => text_hash(text, &loaded),
            None => object_hash(&loaded),
        };
        if options.dry_run {
            return Ok(DeclarativeLoaded::Applied(config_answer(store.registry(), &loaded)));
        }
        // A crash in between leaves no hash, never the hash of another configuration.
        store.set_setting(SETTING, None)?;
        let replaced = replace(store, &loaded);
        let in_force = if replaced.is_ok() { Some(hash.clone()) } else { self.current() };
        store.set_setting(SETTING, in_force.as_deref())?;
        replaced?;
        *self.hash.lock().unwrap_or_else(PoisonError::into_inner) = Some(hash);
        Ok(DeclarativeLoaded::Applied(config_answer(store.registry(), &loaded)))
    }
}

/// What `check_hash` compares with: the MD5 of the text, whatever it holds.
fn text_md5(text: &str) -> String {
    let mut probe = Loaded::default();
    probe.tables.push(Table { entity: "services".to_owned(), records: vec![Map::new()] });
    text_hash(text, &probe)
}

fn unreadable(error: gwctl_declarative::TextError) -> EntityError {
    let words = format!("failed parsing declarative configuration: {error}");
    let fields = Map::from_iter([("error".to_owned(), Value::String(words))]);
    EntityError::InvalidDeclarative { fields, flattened: None }
}

fn replace(store: &dyn Store, loaded: &Loaded) -> Result<(), EntityError> {
    store.replace_all(&Origin::new("", "declarative configuration"), &mut |write| {
        for table in &loaded.tables {
            for record in &table.records {
                write.insert(&table.entity, record.clone())?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The text of `GET /config`.
pub fn export(store: &dyn Store) -> Result<String, EntityError> {
    let read = store.read()?;
    let mut tables = Vec::new();
    for schema in store.registry().entities() {
        tables.push(Table { entity: schema.name.clone(), records: read.all_rows(&schema.name)? });
    }
    Ok(export_text(store.registry(), &tables))
}
