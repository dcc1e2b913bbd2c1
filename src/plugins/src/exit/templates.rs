//! Error pages of the operator's own (`error_template_*`).

use super::{PageFormat, escape};
use gwctl_entities::Value;

/// A template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It has more places than there are values.
    #[error("the template has {0} places `%s`, and there are two values: the message and the id of the request")]
    ConfigPlaces(usize),
    /// A percent sign that is neither `%s` nor `%%`.
    #[error("the template has a `%` that is neither `%s` nor `%%`: write `%%` for a percent sign")]
    ConfigPercent,
}

/// Pages in place of the built-in ones. The first `%s` of each becomes the message, the second the request id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Templates(Vec<(PageFormat, Vec<String>)>);

impl Templates {
    /// Puts a template in place of a built-in page.
    ///
    /// # Errors
    /// Placeholders that cannot be filled.
    pub fn set(&mut self, format: PageFormat, template: &str) -> Result<(), TemplateError> {
        let mut parts = vec![String::new()];
        let mut rest = template.chars();
        while let Some(next) = rest.next() {
            let literal = match next {
                '%' => match rest.next() {
                    Some('s') => None,
                    Some('%') => Some('%'),
                    _ => return Err(TemplateError::ConfigPercent),
                },
                other => Some(other),
            };
            match literal {
                None => parts.push(String::new()),
                Some(literal) => parts.iter_mut().next_back().into_iter().for_each(|part| part.push(literal)),
            }
        }
        if parts.len() > 3 {
            return Err(TemplateError::ConfigPlaces(parts.len() - 1));
        }
        self.0.retain(|(known, _)| *known != format);
        self.0.push((format, parts));
        Ok(())
    }

    /// The page.
    pub fn render(&self, format: PageFormat, message: &str, request_id: &str) -> String {
        let Some((_, parts)) = self.0.iter().find(|(known, _)| *known == format) else {
            return format.render(message, request_id);
        };
        let message = match format {
            PageFormat::Json => {
                let quoted = Value::from(message).to_string();
                quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
            }
            PageFormat::Html | PageFormat::Xml => escape(message),
            PageFormat::Plain => message.to_owned(),
        };
        let values = [message.as_str(), request_id, ""];
        let filled = parts.iter().enumerate().map(|(place, part)| match place {
            0 => part.clone(),
            _ => format!("{}{part}", values[place - 1]),
        });
        filled.collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn message_and_id_take_their_places() {
        let mut templates = Templates::default();
        templates.set(PageFormat::Json, r#"{"error":"%s","id":"%s","share":"1%%"}"#).unwrap();
        templates.set(PageFormat::Html, "<p>%s</p>").unwrap();
        assert_eq!(templates.render(PageFormat::Json, "a \"b\"", "7"), r#"{"error":"a \"b\"","id":"7","share":"1%"}"#);
        assert_eq!(templates.render(PageFormat::Html, "<b>", "7"), "<p>&lt;b&gt;</p>");
        assert_eq!(templates.render(PageFormat::Plain, "m", "7"), PageFormat::Plain.render("m", "7"));
    }

    #[test]
    fn templates_that_cannot_be_filled_are_refused() {
        let mut templates = Templates::default();
        assert_eq!(templates.set(PageFormat::Plain, "%s %s %s"), Err(TemplateError::ConfigPlaces(3)));
        for text in ["100%", "%d", "% s"] {
            assert_eq!(templates.set(PageFormat::Plain, text), Err(TemplateError::ConfigPercent), "{text}");
        }
        assert_eq!(templates, Templates::default());
    }
}
