//! The fleet as a table, and as one column where the terminal is narrow.

use super::Rows;
use crate::State;
use crate::columns::Column;
use crate::format::plain;
use crate::model::Model;
use crate::state::note;
use gwctl_entities::fleet::{Fleet, FleetMember};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

/// Space between two columns.
const GAP: u16 = 2;
/// Columns of the note that are worth seeing.
const NOTE: usize = 20;

/// One row per data plane, as many columns as fit.
pub(super) fn wide(model: &Model, rows: &mut Rows<'_>) {
    let Some((fleet, shown)) = shown(model, rows) else { return };
    let columns = columns(model, fleet, &shown, rows.left.width);
    if let Some(row) = rows.take() {
        for &(column, x, width) in &columns {
            let mark = if column == model.sort { model.theme.order(model.reverse) } else { "" };
            rows.write(at(row, x, width), &format!("{}{mark}", column.title()), model.theme.head());
        }
    }
    for (index, member) in shown.iter().enumerate() {
        let Some(row) = rows.take() else { return };
        let quiet = if model.stale() { model.theme.quiet() } else { Style::new() };
        for &(column, x, width) in &columns {
            let style = if column == Column::State { model.theme.state(State::of(member, fleet)) } else { quiet };
            rows.write(at(row, x, width), &column.cell(member, fleet, model.theme), style);
        }
        if model.top + index == model.selected {
            rows.paint(row, model.theme.selected());
        }
    }
}

/// Sign, word, name and note in one column.
pub(super) fn narrow(model: &Model, rows: &mut Rows<'_>) {
    let Some((fleet, shown)) = shown(model, rows) else { return };
    for (index, member) in shown.iter().enumerate() {
        let Some(row) = rows.take() else { return };
        let cursor = if model.top + index == model.selected { model.theme.cursor() } else { " " };
        let state = State::of(member, fleet);
        let note = note(member).map(|note| format!("  {note}")).unwrap_or_default();
        let text = format!("{cursor}{} {}{note}", state.label(model.theme.ascii), member.name);
        rows.write(row, &plain(&text), model.theme.state(state));
    }
}

/// The data planes that fit; says so when there are none.
fn shown<'a>(model: &'a Model, rows: &mut Rows<'_>) -> Option<(&'a Fleet, Vec<&'a FleetMember>)> {
    let Some(fleet) = &model.fleet else {
        rows.put("", Style::new());
        let waiting = if model.fault.is_some() { "trying again by itself" } else { "waiting for the first answer" };
        rows.put(waiting, model.theme.quiet());
        return None;
    };
    if model.rows.is_empty() {
        let none = match fleet.items.len() {
            0 => "no data plane has connected yet: start one with `gwctl dp join HOST:8005`",
            _ => "no data plane matches; esc shows all",
        };
        rows.put("", Style::new());
        rows.put(none, model.theme.quiet());
        return None;
    }
    let members = model.rows.iter().skip(model.top).filter_map(|&row| fleet.items.get(row));
    Some((fleet, members.take(usize::from(rows.left.height)).collect()))
}

/// The columns that fit with their place: the fixed ones, then the others from where they are scrolled to. Where
/// little of the note would be seen, it comes before the address: what is wrong matters more than where.
fn columns(model: &Model, fleet: &Fleet, shown: &[&FleetMember], width: u16) -> Vec<(Column, u16, u16)> {
    let widths: Vec<(Column, usize)> = Column::ALL
        .into_iter()
        .map(|column| {
            let cells = shown.iter().map(|member| Line::raw(column.cell(member, fleet, model.theme)).width());
            let head = column.title().len() + usize::from(column == model.sort);
            let limit = if model.whole { usize::MAX } else { column.limit() };
            (column, cells.max().unwrap_or_default().min(limit).max(head))
        })
        .collect();
    let (fixed, moving) = widths.split_at(Column::FIXED);
    let mut moving = moving.to_vec();
    let others = widths.iter().filter(|(column, _)| !matches!(column, Column::Note | Column::Slowest));
    let before: usize = others.map(|(_, width)| width + usize::from(GAP)).sum();
    let noted = shown.iter().any(|member| note(member).is_some());
    if noted && before + NOTE > usize::from(width) {
        moving.sort_by_key(|(column, _)| matches!(column, Column::Address | Column::Labels | Column::Mode));
    }
    let mut columns = Vec::new();
    let mut x = 0_u16;
    for &(column, wanted) in fixed.iter().chain(moving.iter().skip(model.shifted)) {
        let wanted = u16::try_from(wanted).unwrap_or(u16::MAX);
        let left = width.saturating_sub(x);
        // A cut column is worth its place only where it holds prose.
        if left < wanted && !(left >= 8 && column.limit() > 12) {
            break;
        }
        columns.push((column, x, wanted.min(left)));
        x = x.saturating_add(wanted).saturating_add(GAP);
    }
    columns
}

/// Width at which no cell of the model's fleet is cut, when the model is whole.
pub(crate) fn whole_width(model: &Model) -> u16 {
    let Some(fleet) = &model.fleet else { return 0 };
    let members: Vec<&FleetMember> = fleet.items.iter().collect();
    columns(model, fleet, &members, u16::MAX).last().map_or(0, |(_, x, width)| x.saturating_add(*width))
}

fn at(row: Rect, x: u16, width: u16) -> Rect {
    Rect { x: row.x + x, width, ..row }
}
