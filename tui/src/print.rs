//! A frame as text.

use crate::model::Model;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::text::Span;

/// Draws the model at this size and gives the text of it: one line per row, no colours, no spaces at the ends.
pub fn frame_text(model: &Model, width: u16, height: u16) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| crate::view(model, frame));
    buffer_text(terminal.backend().buffer())
}

fn buffer_text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut x = buffer.area.left();
        let start = text.len();
        while let Some(cell) = buffer.cell((x, y)).filter(|_| x < buffer.area.right()) {
            text.push_str(cell.symbol());
            // A wide character covers the cells after it.
            x += (Span::raw(cell.symbol()).width() as u16).max(1);
        }
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
    text
}
