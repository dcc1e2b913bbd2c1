//! Figures of a process in the text form of Prometheus.
//!
//! Source: the text-based exposition format, version 0.0.4.

use std::fmt::{Display, Write};

/// One family of figures: its help and kind, then its lines.
#[derive(Debug)]
pub struct Family<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl<'a> Family<'a> {
    /// Begins a family at the end of `out`; `kind` is `counter`, `gauge`, `histogram` or `summary`.
    pub fn begin(out: &'a mut String, name: &'static str, kind: &str, help: &str) -> Self {
        // Writing to memory does not fail, here and below.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Self { out, name }
    }

    /// A line of the family; `suffix` is `_bucket`, `_sum`, `_count` or empty.
    pub fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.out, "{}{suffix}", self.name);
        let mut before = '{';
        for (name, value) in labels {
            let _ = write!(self.out, "{before}{name}=\"");
            escaped(self.out, value);
            self.out.push('"');
            before = ',';
        }
        let _ = writeln!(self.out, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A family of one gauge.
    pub fn gauge(out: &'a mut String, name: &'static str, help: &str, labels: &[(&str, &str)], value: impl Display) {
        Self::begin(out, name, "gauge", help).line("", labels, value);
    }
}

fn escaped(out: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_break_out_of_their_line() {
        let mut out = String::new();
        Family::gauge(&mut out, "x", "Help.", &[("a", "q\"\\\nz"), ("b", "")], 1.5);
        assert_eq!(out, "# HELP x Help.\n# TYPE x gauge\nx{a=\"q\\\"\\\\\\nz\",b=\"\"} 1.5\n");
    }

    #[test]
    fn a_figure_without_labels_has_no_braces() {
        let mut out = String::new();
        Family::begin(&mut out, "x", "counter", "Help.").line("_count", &[], 7);
        assert!(out.ends_with("\nx_count 7\n"), "{out}");
    }
}
