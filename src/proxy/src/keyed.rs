//! Maps by what a configuration names.
//!
//! Whoever sends requests does not choose these names, so that the hash may be a quick one.

use foldhash::quality::RandomState;
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use std::collections::HashMap;
use std::sync::Arc;

/// Values by an id or a name; a copy costs nothing.
pub(crate) type Keyed<V> = GenericHashMap<Arc<str>, V, RandomState, DefaultSharedPtr>;

/// The same with one owner.
pub(crate) type Own<K, V> = HashMap<K, V, RandomState>;
