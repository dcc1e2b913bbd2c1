//! Lua patterns, so that schemas (ours and those of Lua plugins) can be used as they are written.
//!
//! Captures are matched through but not reported; back references never match. Source: Lua 5.1, `lstrlib.c`.

use std::cell::Cell;

/// True when the pattern matches somewhere in the text.
pub(crate) fn matches(text: &str, pattern: &str) -> bool {
    let (anchored, pattern) = match pattern.as_bytes() {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let matcher = Matcher { text: text.as_bytes(), pattern, steps: Cell::new(STEPS) };
    let last = if anchored { 0 } else { text.len() };
    (0..=last).any(|start| matcher.at(start, 0))
}

/// Positions tried before a match is given up: hostile text must not hold a thread.
const STEPS: u32 = 1_000_000;

struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    steps: Cell<u32>,
}

impl Matcher<'_> {
    /// Does the pattern from `p` match at `s`? Recursion is bounded by the length of the pattern.
    fn at(&self, mut s: usize, mut p: usize) -> bool {
        let Some(left) = self.steps.get().checked_sub(1) else { return false };
        self.steps.set(left);
        loop {
            match self.pattern.get(p) {
                None => return true,
                Some(b'(' | b')') => {
                    p += 1;
                    continue;
                }
                Some(b'$') if p + 1 == self.pattern.len() => return s == self.text.len(),
                Some(b'%') if self.pattern.get(p + 1) == Some(&b'f') => match self.frontier(s, p + 2) {
                    Some(next) => {
                        p = next;
                        continue;
                    }
                    None => return false,
                },
                Some(b'%') if self.pattern.get(p + 1) == Some(&b'b') => match self.balanced(s, p + 2) {
                    Some(end) => {
                        s = end;
                        p += 4;
                        continue;
                    }
                    None => return false,
                },
                Some(_) => {}
            }
            let end = self.item_end(p);
            match self.pattern.get(end) {
                Some(b'?') => {
                    if self.single(s, p, end) && self.at(s + 1, end + 1) {
                        return true;
                    }
                    p = end + 1;
                }
                Some(b'*') => return self.longest(s, p, end, 0),
                Some(b'+') => return self.longest(s, p, end, 1),
                Some(b'-') => return self.shortest(s, p, end),
                _ => {
                    if !self.single(s, p, end) {
                        return false;
                    }
                    s += 1;
                    p = end;
                }
            }
        }
    }

    fn longest(&self, s: usize, p: usize, end: usize, least: usize) -> bool {
        let count = (s..self.text.len()).take_while(|&at| self.single(at, p, end)).count();
        (least..=count).rev().any(|taken| self.at(s + taken, end + 1))
    }

    fn shortest(&self, mut s: usize, p: usize, end: usize) -> bool {
        loop {
            if self.at(s, end + 1) {
                return true;
            }
            if !self.single(s, p, end) {
                return false;
            }
            s += 1;
        }
    }

    /// Index after the single-character item at `p`.
    fn item_end(&self, p: usize) -> usize {
        match self.pattern.get(p) {
            Some(b'%') => (p + 2).min(self.pattern.len()),
            Some(b'[') => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // A bracket directly after the opening one is a character.
                let mut first = true;
                while let Some(&byte) = self.pattern.get(at) {
                    match byte {
                        b']' if !first => return at + 1,
                        b'%' => at += 2,
                        _ => at += 1,
                    }
                    first = false;
                }
                self.pattern.len()
            }
            _ => p + 1,
        }
    }

    fn single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(s) else { return false };
        match self.pattern.get(p) {
            Some(b'.') => true,
            Some(b'%') => self.pattern.get(p + 1).is_some_and(|&class| in_class(byte, class)),
            Some(b'[') => self.in_set(byte, p + 1, end.saturating_sub(1)),
            Some(&literal) => literal == byte,
            None => false,
        }
    }

    /// Is the byte in the set written between `from` and `to` (brackets left out)?
    fn in_set(&self, byte: u8, mut from: usize, to: usize) -> bool {
        let negated = self.pattern.get(from) == Some(&b'^');
        if negated {
            from += 1;
        }
        let set = self.pattern.get(from..to).unwrap_or_default();
        let mut at = 0;
        let mut found = false;
        while at < set.len() {
            match (set[at], set.get(at + 1), set.get(at + 2)) {
                (b'%', Some(&class), _) => {
                    found |= in_class(byte, class);
                    at += 2;
                }
                (low, Some(b'-'), Some(&high)) => {
                    found |= (low..=high).contains(&byte);
                    at += 3;
                }
                (literal, _, _) => {
                    found |= literal == byte;
                    at += 1;
                }
            }
        }
        found != negated
    }

    /// `%bxy` at `s`: the end of the balanced stretch.
    fn balanced(&self, s: usize, p: usize) -> Option<usize> {
        let (&open, &close) = (self.pattern.get(p)?, self.pattern.get(p + 1)?);
        if self.text.get(s) != Some(&open) {
            return None;
        }
        let mut depth = 1usize;
        for (offset, &byte) in self.text.get(s + 1..)?.iter().enumerate() {
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Some(s + offset + 2);
                }
            } else if byte == open {
                depth += 1;
            }
        }
        None
    }

    /// `%f[set]` at `s`: where the pattern goes on.
    fn frontier(&self, s: usize, p: usize) -> Option<usize> {
        let end = self.item_end(p);
        let before = if s == 0 { 0 } else { self.text.get(s - 1).copied().unwrap_or(0) };
        let after = self.text.get(s).copied().unwrap_or(0);
        let inside = |byte| self.in_set(byte, p + 1, end.saturating_sub(1));
        (!inside(before) && inside(after)).then_some(end)
    }
}

fn in_class(byte: u8, class: u8) -> bool {
    let inside = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    inside != class.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn classes_sets_and_repetitions_match_as_lua_does() {
        for (text, pattern, expected) in [
            ("GET", "^%u+$", true),
            ("Get", "^%u+$", false),
            ("my-env", "^[a-z][a-z%d-]-[a-z%d]+$", true),
            ("A_b", "^[a-z][a-z%d-]-[a-z%d]+$", false),
            ("*.a", "^%*%.", true),
            ("a.*", "%.%*$", true),
            ("a*b*c", "^[^*]*%*?[^*]*$", false),
            ("a*b", "^[^*]*%*?[^*]*$", true),
            ("a//b", "//", true),
            ("f(a(b)c)d", "^f%b()d$", true),
            ("THE (quick) fox", "%f[%a]%a+%f[%A]", true),
            ("", "^$", true),
            ("]", "^[]]$", true),
            ("a-b", "^[%a-]+$", true),
            ("HOST", "^[Hh][Oo][Ss][Tt]$", true),
        ] {
            assert_eq!(matches(text, pattern), expected, "{text:?} against {pattern:?}");
        }
    }

    #[test]
    fn hostile_text_is_given_up() {
        let text = "a".repeat(1 << 20);
        assert!(!matches(&text, "%w*%p*@+%w*%.?%w*"));
    }

    #[test]
    fn malformed_patterns_do_not_panic() {
        for pattern in ["%", "[", "[^", "[a", "[%", "%b", "%bx", "%f", "%f[", "(", ")", "*", "+", "a-", "^", "$"] {
            let _ = matches("abc", pattern);
        }
    }
}
