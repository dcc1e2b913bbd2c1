//! Near misses of names.

/// The candidate nearest to a name, if it is near enough to be a slip of the finger. Case does not count.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 4).clamp(1, 3);
    let distances =
        candidates.into_iter().map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate));
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// The setting whose key is nearest to a mistyped one.
pub fn nearest_key(name: &str) -> Option<&'static str> {
    nearest(name, crate::KEYS.iter().map(|key| key.name))
}

/// "did you mean" with the nearest candidate.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// Number of letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = last[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let names = ["cluster_cert", "cluster_cert_key", "shared", "pki", "role"];
        assert_eq!(nearest("cluster_crt", names), Some("cluster_cert"));
        assert_eq!(nearest("cluster_cret_key", names), Some("cluster_cert_key"));
        assert_eq!(nearest("sharde", names), Some("shared"));
        assert_eq!(nearest("proxy_listen", names), None);
        assert_eq!(nearest("", names), None);
    }
}
