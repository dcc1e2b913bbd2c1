//! Numbers as people read them.

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
    fn escape_sequences_lose_their_power() {
        assert_eq!(plain("a\x1b[31mb\nc"), "a [31mb c");
    }
}
