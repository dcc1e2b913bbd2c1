//! Numbers and texts as people read them.

use ratatui::text::Line;

/// A duration in at most four characters and a unit: `850ms`, `12s`, `3m`, `5h`, `9d`.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long ago, in whole seconds at least: `0s`, `12s`, `3m`.
pub fn age(millis: u64) -> String {
    if millis < 1000 { "0s".to_owned() } else { duration(millis) }
}

/// The first eight digits of a hash.
pub fn short_hash(hash: &str) -> String {
    hash.chars().take(8).collect()
}

/// The text on one line and without what a terminal would obey: control characters become spaces.
///
/// Names and errors come from other nodes; printed as they are they could move the cursor or change its colours.
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Like [`plain`], but keeps the ends of lines.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// The text in at most so many lines of a width, folded between words; the last one takes what is left, however long.
pub fn folded(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let full = lines.len() >= most;
        match lines.last_mut() {
            Some(line) if full || Line::raw(&*line).width() + 1 + Line::raw(word).width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_one_unit() {
        let cases = [(0, "0ms"), (999, "999ms"), (1000, "1s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h")];
        for (millis, text) in cases {
            assert_eq!(duration(millis), text);
        }
        assert_eq!(duration(172_800_000), "2d");
        assert_eq!(age(20), "0s");
    }

    #[test]
    fn a_text_is_folded_between_words_and_nothing_of_it_is_lost() {
        assert_eq!(folded("one two three", 7, 4), ["one two", "three"]);
        assert_eq!(folded("a-long-word at last", 4, 4), ["a-long-word", "at", "last"]);
        assert_eq!(folded("one two three four", 5, 2), ["one", "two three four"]);
        assert_eq!(folded("short", 80, 4), ["short"]);
    }

    #[test]
    fn escape_sequences_lose_their_power() {
        assert_eq!(plain("a\x1b[31mb\nc"), "a [31mb c");
    }
}
