//! Plain tables: one row per item, no borders, nothing cut.

use gwctl_tui::format::plain;
use ratatui::text::Span;

/// Rows below a head, columns two spaces apart.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|title| (*title).to_owned()).collect();
    let width = |column: usize| {
        let cells = std::iter::once(&head).chain(rows).filter_map(|row| row.get(column));
        cells.map(|cell| Span::raw(plain(cell)).width()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let cell = plain(cell);
            let gap = width.saturating_sub(Span::raw(&cell).width()) + 2;
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', gap));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".into(), "1".into()], vec!["日本".into(), "\x1b[2J".into()]];
        assert_eq!(table(&["NAME", "N"], &rows), "NAME  N\na     1\n日本   [2J\n");
    }
}
