//! The model on the screen. Every text is cut to its place, so that no size can break it.

mod detail;
mod help;
mod table;

use crate::State;
use crate::format::short_hash;
use crate::model::{Model, Screen};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

/// Below this a table makes no sense: one column, the worst first.
const NARROW: u16 = 60;

/// Draws the model.
pub fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut rows = Rows { left: area, buffer: frame.buffer_mut(), cut: model.theme.cut() };
    if area.height < 3 {
        rows.put(&counts(model).join(" "), model.theme.title());
        return;
    }
    title(model, &mut rows);
    let style = if model.fault.is_some() { model.theme.alarm() } else { model.theme.warning() };
    for line in model.banner() {
        rows.put(&line, style);
    }
    let status = rows.take_last();
    if let Some(note) = model.note_line() {
        let mut above = Rows { left: rows.take_last(), buffer: &mut *rows.buffer, cut: model.theme.cut() };
        above.put(&crate::format::plain(note), model.theme.warning());
    }
    match model.screen {
        Screen::Fleet if area.width < NARROW => table::narrow(model, &mut rows),
        Screen::Fleet => table::wide(model, &mut rows),
        Screen::Detail | Screen::Help => {
            for (text, style) in lines(model).into_iter().skip(model.scroll) {
                rows.put(&text, style);
            }
        }
    }
    let mut last = Rows { left: status, buffer: rows.buffer, cut: model.theme.cut() };
    let (text, style) = status_line(model);
    last.put(&text, style);
}

/// Width of a frame in which nothing of the fleet is cut; of a model that is whole.
pub fn whole_width(model: &Model) -> u16 {
    table::whole_width(model)
}

/// The lines of the screen that lies over the fleet.
pub(crate) fn lines(model: &Model) -> Vec<(String, Style)> {
    match model.screen {
        Screen::Help => help::lines(model),
        Screen::Detail => detail::lines(model),
        Screen::Fleet => Vec::new(),
    }
}

fn title(model: &Model, rows: &mut Rows<'_>) {
    let mut parts = vec![format!("gwctl  {}", model.address)];
    if let Some(fleet) = &model.fleet {
        let hash = fleet.config_hash.as_deref().map_or_else(|| "-".to_owned(), short_hash);
        parts.push(format!("version {}", fleet.version));
        parts.push(format!("config {hash}"));
    }
    parts.push(format!("every {}", crate::format::duration(model.interval)));
    if !model.counts_line() {
        parts.splice(1.., counts(model));
    }
    rows.put(&parts.join("  "), model.theme.title());
    if model.counts_line() {
        rows.put(&counts(model).join("  "), Style::new());
    }
}

/// `● 3 online` and so on; in a narrow terminal the worst first, as the end may be cut.
fn counts(model: &Model) -> Vec<String> {
    let Some(fleet) = &model.fleet else { return vec!["no data yet".to_owned()] };
    let shown = State::ALL
        .into_iter()
        .filter(|&state| model.count(state) > 0 || !matches!(state, State::Refused | State::Left));
    let mut texts: Vec<String> = shown
        .map(|state| format!("{} {} {}", state.sign(model.theme.ascii), model.count(state), state.word()))
        .collect();
    if model.width < NARROW {
        texts.reverse();
        return texts;
    }
    let nodes = if fleet.items.len() == 1 { "data plane" } else { "data planes" };
    texts.insert(0, format!("{} {nodes}:", fleet.items.len()));
    texts
}

fn status_line(model: &Model) -> (String, Style) {
    if model.typing {
        return (format!("/{}_   enter keeps, esc clears", model.filter.text), model.theme.title());
    }
    match model.screen {
        Screen::Help => return ("esc back  j/k scroll".to_owned(), model.theme.quiet()),
        Screen::Detail => return ("esc back  j/k scroll  ? help".to_owned(), model.theme.quiet()),
        Screen::Fleet => {}
    }
    let mut parts = Vec::new();
    if !model.filter.text.is_empty() {
        parts.push(format!("filter: {}", model.filter.text));
    }
    if model.problems_only {
        parts.push("only problems".to_owned());
    }
    if let (false, Some(fleet)) = (parts.is_empty(), &model.fleet) {
        parts.push(format!("{} of {} shown, esc shows all", model.rows.len(), fleet.items.len()));
    }
    parts.push("? help  / filter  e problems  enter detail  q quit".to_owned());
    (parts.join("  "), model.theme.quiet())
}

/// The rows of the screen that are still free.
struct Rows<'a> {
    left: Rect,
    buffer: &'a mut Buffer,
    cut: &'static str,
}

impl Rows<'_> {
    /// The next row; None when the screen is full.
    fn take(&mut self) -> Option<Rect> {
        if self.left.height == 0 || self.left.width == 0 {
            return None;
        }
        let row = Rect { height: 1, ..self.left };
        self.left.y += 1;
        self.left.height -= 1;
        Some(row)
    }

    fn take_last(&mut self) -> Rect {
        let height = self.left.height.min(1);
        self.left.height -= height;
        Rect { y: self.left.y + self.left.height, height, ..self.left }
    }

    /// Writes a line into the next row.
    fn put(&mut self, text: &str, style: Style) {
        if let Some(row) = self.take() {
            self.write(row, text, style);
        }
    }

    /// Writes into a place of one row; longer text ends with the sign of a cut.
    fn write(&mut self, place: Rect, text: &str, style: Style) {
        let place = place.intersection(self.buffer.area);
        if place.is_empty() {
            return;
        }
        let width = usize::from(place.width);
        let fits = Line::raw(text).width() <= width;
        let room = if fits { width } else { width - 1 };
        let (end, _) = self.buffer.set_stringn(place.x, place.y, text, room, style);
        if !fits && end < place.right() {
            self.buffer.set_string(end, place.y, self.cut, style);
        }
    }

    fn paint(&mut self, place: Rect, style: Style) {
        self.buffer.set_style(place.intersection(self.buffer.area), style);
    }
}
