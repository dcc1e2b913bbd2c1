//! The terminal dashboard: model, update, view.
