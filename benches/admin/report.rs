//! The table of figures.

use std::time::Duration;

/// Prints a figure as soon as it is there, and remembers whether one missed what is wanted.
#[derive(Default)]
pub(crate) struct Report {
    missed: usize,
}

impl Report {
    /// The heading of a part and of its columns.
    pub(crate) fn part(&self, title: &str) {
        println!("\n{title:<64} {:>12} {:>12} {:>7}", "figure", "wanted", "ratio");
    }

    /// A figure that is told without being judged.
    pub(crate) fn tell(&self, what: &str, figure: f64, unit: &str) {
        println!("{what:<64} {:>12}", shown(figure, unit));
    }

    /// A figure that should be below a limit.
    pub(crate) fn judge(&mut self, what: &str, figure: f64, wanted: f64, unit: &str) {
        let ratio = figure / wanted;
        let mark = if ratio > 1.0 { " missed" } else { "" };
        self.missed += usize::from(ratio > 1.0);
        println!("{what:<64} {:>12} {:>12} {ratio:>7.2}{mark}", shown(figure, unit), shown(wanted, unit));
    }

    /// Figures that missed what is wanted.
    pub(crate) fn missed(&self) -> usize {
        self.missed
    }
}

fn shown(figure: f64, unit: &str) -> String {
    let digits = if figure >= 100.0 { 0 } else { 2 };
    format!("{figure:.digits$} {unit}").trim_end().to_owned()
}

pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
