//! Events to changes of the model.

use crate::columns::Column;
use crate::keys::{Command, command};
use crate::model::{INTERVALS, Model, Screen};
use crate::{Action, Event, Key};

/// Longest filter, characters.
const LONGEST_FILTER: usize = 200;

/// Takes an event in; what the driver must do next, in this order.
pub fn update(model: &mut Model, event: Event) -> Vec<Action> {
    match event {
        Event::Key(key) if model.typing => type_key(model, key),
        Event::Key(key) => command(key).map(|command| obey(model, command)).unwrap_or_default(),
        Event::Resize { width, height } => {
            (model.width, model.height) = (width, height);
            model.select(model.selected);
            Vec::new()
        }
        Event::Tick { now } => {
            model.now = now;
            ask(model)
        }
        Event::Answer { now, fleet } => {
            model.now = now;
            model.asking = false;
            match fleet {
                Ok(fleet) => {
                    model.fleet = Some(*fleet);
                    model.fleet_at = now;
                    model.fault = None;
                    model.failures = 0;
                }
                Err(fault) => {
                    model.fault = Some(crate::format::plain(&fault.reason));
                    model.failures = model.failures.saturating_add(1);
                }
            }
            model.next_ask = now.saturating_add(model.wait());
            model.arrange();
            Vec::new()
        }
    }
}

/// Asks when it is time, one question at a time.
fn ask(model: &mut Model) -> Vec<Action> {
    if model.paused || model.asking || model.now < model.next_ask {
        return Vec::new();
    }
    model.asking = true;
    vec![Action::Fetch]
}

fn type_key(model: &mut Model, key: Key) -> Vec<Action> {
    match key {
        Key::Ctrl('c') => return vec![Action::Quit],
        Key::Ctrl('u') => model.filter.text.clear(),
        Key::Char(letter) if model.filter.text.chars().count() < LONGEST_FILTER => model.filter.text.push(letter),
        Key::Backspace => {
            model.filter.text.pop();
        }
        Key::Enter => model.typing = false,
        Key::Esc => {
            model.filter.text.clear();
            model.typing = false;
        }
        Key::Up => model.select(model.selected.saturating_sub(1)),
        Key::Down => model.select(model.selected + 1),
        _ => return Vec::new(),
    }
    model.arrange();
    Vec::new()
}

fn obey(model: &mut Model, command: Command) -> Vec<Action> {
    let rows = model.page();
    match command {
        Command::Up => step(model, -1),
        Command::Down => step(model, 1),
        Command::PageUp => step(model, -(rows as isize)),
        Command::PageDown => step(model, rows as isize),
        Command::First => step(model, isize::MIN),
        Command::Last => step(model, isize::MAX),
        Command::Left => model.shifted = model.shifted.saturating_sub(1),
        Command::Right => model.shifted = (model.shifted + 1).min(Column::ALL.len() - Column::FIXED - 1),
        Command::Open => open(model, Screen::Detail),
        Command::Help if model.screen == Screen::Help => open(model, Screen::Fleet),
        Command::Help => open(model, Screen::Help),
        Command::Back if model.screen != Screen::Fleet => open(model, Screen::Fleet),
        Command::Back => {
            model.filter.text.clear();
            model.problems_only = false;
            model.arrange();
        }
        Command::Filter => {
            open(model, Screen::Fleet);
            model.typing = true;
        }
        Command::Problems => {
            model.problems_only = !model.problems_only;
            model.arrange();
        }
        Command::SortLeft => sort(model, -1),
        Command::SortRight => sort(model, 1),
        Command::Reverse => {
            model.reverse = !model.reverse;
            model.arrange();
        }
        Command::Pause => {
            model.paused = !model.paused;
            return ask(model);
        }
        Command::Slower => change_interval(model, |interval| INTERVALS.into_iter().find(|&step| step > interval)),
        Command::Faster => {
            change_interval(model, |interval| INTERVALS.into_iter().rev().find(|&step| step < interval));
        }
        Command::Quit if model.screen != Screen::Fleet => open(model, Screen::Fleet),
        Command::Quit | Command::Leave => return vec![Action::Quit],
    }
    Vec::new()
}

fn open(model: &mut Model, screen: Screen) {
    if screen == Screen::Detail && model.member().is_none() {
        return;
    }
    model.screen = screen;
    model.scroll = 0;
}

/// Moves the selection, or the text of help and detail.
fn step(model: &mut Model, rows: isize) {
    match model.screen {
        Screen::Fleet => model.select(model.selected.saturating_add_signed(rows)),
        Screen::Detail | Screen::Help => {
            let last = crate::view::lines(model).len().saturating_sub(model.page());
            model.scroll = model.scroll.saturating_add_signed(rows).min(last);
        }
    }
}

fn sort(model: &mut Model, columns: isize) {
    let count = Column::ALL.len();
    let at = Column::ALL.iter().position(|&column| column == model.sort).unwrap_or_default();
    model.sort = Column::ALL[(at + count).saturating_add_signed(columns) % count];
    model.arrange();
}

fn change_interval(model: &mut Model, next: impl Fn(u64) -> Option<u64>) {
    model.interval = next(model.interval).unwrap_or(model.interval);
    model.next_ask = model.next_ask.min(model.now.saturating_add(model.interval));
}
