//! The keys, from the table that the handler reads.

use crate::State;
use crate::keys::BINDINGS;
use crate::model::Model;
use ratatui::style::Style;

pub(super) fn lines(model: &Model) -> Vec<(String, Style)> {
    let mut lines = vec![("KEYS".to_owned(), model.theme.head())];
    for binding in BINDINGS {
        lines.push((format!("  {:<18}{}", binding.label, binding.help), Style::new()));
    }
    lines.push((String::new(), Style::new()));
    lines.push(("STATES".to_owned(), model.theme.head()));
    for state in State::ALL {
        let meaning = match state {
            State::Online => "connected, heard of in time and not behind",
            State::Late => "silent for 10 s (Kong's protocols 45 s) or behind for 45 s",
            State::Refused => "connected, but gets no configuration or refuses it",
            State::Left => "said goodbye: stopped on purpose",
            State::Offline => "no connection, or silent for more than 90 s",
        };
        lines.push((format!("  {:<18}{meaning}", state.label(model.theme.ascii)), model.theme.state(state)));
    }
    lines
}
