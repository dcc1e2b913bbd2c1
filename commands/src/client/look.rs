//! What the terminal can show.

use super::args::{ColourChoice, LookArgs};
use std::io::IsTerminal;

/// How output is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub colour: bool,
    pub ascii: bool,
}

impl Look {
    /// For stdout, by flags and environment.
    pub fn of(args: &LookArgs) -> Look {
        let terminal = std::io::stdout().is_terminal();
        let variable = |name: &str| std::env::var(name).ok();
        Look { colour: colour(args.colour, terminal, &variable), ascii: args.ascii || ascii(&variable) }
    }

    /// The text in a colour of the terminal's palette, by its SGR code.
    pub fn tint(self, text: &str, code: u8) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// `--color`, then NO_COLOR, CLICOLOR_FORCE, CLICOLOR, then whether it is a terminal that can.
fn colour(choice: ColourChoice, terminal: bool, variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto if set("NO_COLOR").is_some() => false,
        ColourChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColourChoice::Auto if variable("CLICOLOR").as_deref() == Some("0") => false,
        ColourChoice::Auto => terminal && variable("TERM").as_deref() != Some("dumb"),
    }
}

/// Whether the locale says that only ASCII is safe. No locale at all says nothing.
fn ascii(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let mut names = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = names.find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let dumb = variable("TERM").as_deref() == Some("dumb");
    dumb || locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// Whether a screen can be drawn at all.
pub fn interactive() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(choice: ColourChoice, terminal: bool, variables: &[(&str, &str)]) -> bool {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        colour(choice, terminal, &find)
    }

    #[test]
    fn colours_follow_flag_then_environment_then_terminal() {
        use ColourChoice::{Always, Auto, Never};
        assert!(coloured(Auto, true, &[]) && !coloured(Auto, false, &[]));
        assert!(coloured(Always, false, &[("NO_COLOR", "1")]) && !coloured(Never, true, &[]));
        assert!(!coloured(Auto, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(coloured(Auto, true, &[("NO_COLOR", "")]));
        assert!(coloured(Auto, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!coloured(Auto, true, &[("CLICOLOR", "0")]) && !coloured(Auto, true, &[("TERM", "dumb")]));
    }

    #[test]
    fn an_old_locale_means_ascii() {
        let locale = |value: &'static str| ascii(&|name| (name == "LANG").then(|| value.to_owned()));
        assert!(locale("C") && locale("de_DE.ISO-8859-1"));
        assert!(!locale("C.UTF-8") && !locale("en_GB.utf8") && !ascii(&|_| None));
    }
}
