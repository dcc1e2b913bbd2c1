//! Plans on the terminal: in colour, and the question before they are carried out.

use super::look::Look;
use crate::failure::{Failure, GUARD};
use gwctl_declarative::Plan;
use std::io::IsTerminal as _;

/// The signs at the start of lines, in colour; control characters of values taken out.
pub fn painted(text: &str, look: Look) -> String {
    let mut painted = String::new();
    for line in text.lines() {
        let line = gwctl_tui::format::plain(line);
        let code = match line.get(..2) {
            Some("+ ") => Some(32),
            Some("! ") if line.starts_with("! MOVES ") => Some(31),
            Some("~ " | "! ") => Some(33),
            Some("- ") => Some(31),
            _ => None,
        };
        painted += &code.map_or_else(|| line.clone(), |code| look.tint(&line, code));
        painted.push('\n');
    }
    painted
}

/// Asks before something is done that cannot be taken back by itself; `what` is the question without its mark.
///
/// Without a terminal to ask on only `--yes` says so, and the command ends with the exit code of a guard.
pub fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let what = gwctl_tui::format::plain(what);
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::new(format!("{what}: nobody can be asked here; nothing was sent"))
            .hint("add --yes to do it without a question")
            .code(GUARD));
    }
    crate::terminal::show(&format!("{what}? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::new("not confirmed; nothing was sent").code(GUARD))
}

/// Whether two plans do the same, whatever the records they leave alone.
pub fn same(one: &Plan, other: &Plan) -> bool {
    let said = |plan: &Plan| Plan { left: Vec::new(), ..plan.clone() }.to_text();
    let sent = |plan: &Plan| {
        plan.operations
            .iter()
            .map(|operation| {
                operation.body_for_put.clone().map(|mut body| {
                    // Drawn anew each time a plan is made.
                    for drawn in ["id", "created_at", "updated_at"] {
                        body.remove(drawn);
                    }
                    body
                })
            })
            .collect::<Vec<_>>()
    };
    said(one) == said(other) && sent(one) == sent(other)
}
