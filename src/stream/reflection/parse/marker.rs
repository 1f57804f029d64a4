//! List markers.

/// An item's first line without its marker, if it has one. Items may be called by a name: `Insight 1:`.
pub(super) fn strip(line: &str, name: &str) -> Option<String> {
    let (heading, rest) = match line.trim_start_matches('#') {
        rest if rest.len() < line.len() => (true, rest.trim_start()),
        rest => (false, rest),
    };
    let (bullet, rest) = match bullet(rest) {
        Some(rest) if !heading => (true, rest),
        _ => (false, rest),
    };
    let bold = rest.strip_prefix("**");
    let unstyled = bold.unwrap_or(rest);
    let number = number(unstyled);
    let unnumbered = number.unwrap_or(unstyled);
    let label = label(unnumbered, name);
    let unlabelled = label.unwrap_or(unnumbered);
    if number.is_none() && label.is_none() {
        return bullet.then(|| rest.to_owned());
    }
    // Bold that the marker does not close goes on in the text.
    Some(match (bold, unlabelled.trim_start().strip_prefix("**")) {
        (None, _) => unlabelled.trim_start().to_owned(),
        (Some(_), Some(rest)) => rest.trim_start_matches(':').trim_start().to_owned(),
        (Some(_), None) => format!("**{}", unlabelled.trim_start()),
    })
}

/// What follows a bullet.
fn bullet(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix('•') {
        return Some(rest.trim_start());
    }
    let rest = line.strip_prefix(['-', '*'])?;
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    ends.then(|| rest.trim_start())
}

/// What follows `1.`, `1)`, or `(1)` if that is text.
fn number(line: &str) -> Option<&str> {
    if let Some(inside) = line.strip_prefix('(') {
        let rest = digits(inside)?.strip_prefix(')')?.trim_start();
        // A citation may stand alone, or have another behind it.
        let is_text = rest.starts_with(|c: char| !c.is_ascii_punctuation() || "\"'*".contains(c));
        return is_text.then_some(rest);
    }
    let rest = digits(line)?.strip_prefix(['.', ')'])?;
    // 1.5 is a number.
    (!rest.starts_with(|c: char| c.is_ascii_digit())).then(|| rest.trim_start())
}

/// What follows `Insight 1:`, whose number may be bold without the colon.
fn label<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let found = line.get(..name.len())?;
    let rest = line[name.len()..].trim_start();
    let rest = digits(rest.strip_prefix('#').unwrap_or(rest))?.trim_start();
    let named = found.eq_ignore_ascii_case(name);
    let ends = rest.strip_prefix([':', '.', ')']);
    let rest = ends.or_else(|| rest.starts_with("**:").then_some(rest))?;
    named.then_some(rest)
}

/// What follows one or more digits.
fn digits(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < line.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_goes_and_bold_that_it_opened_stays() {
        for marker in [
            "1. ",
            "12. ",
            "1.",
            "1) ",
            "1)",
            "(1) ",
            "(1)",
            "- ",
            "* ",
            "• ",
            "•",
            "- 1. ",
            "* 2) ",
            "Insight 1: ",
            "insight 1:",
            "INSIGHT #12: ",
            "Insight 1. ",
            "**1.** ",
            "**1. ** ",
            "**Insight 1:** ",
            "**Insight 1**: ",
            "- **Insight 1:** ",
            "1. Insight 1: ",
            "## 1. ",
            "### Insight 1: ",
            "# **2)** ",
        ] {
            let line = format!("{marker}Klaus (1)");
            assert_eq!(
                strip(&line, "insight").as_deref(),
                Some("Klaus (1)"),
                "{line}"
            );
        }
        assert_eq!(
            strip("**1. Klaus** (1)", "insight").as_deref(),
            Some("**Klaus** (1)")
        );
        assert_eq!(
            strip("- **Klaus** (1)", "insight").as_deref(),
            Some("**Klaus** (1)")
        );
        for alone in ["1.", "2)", "-", "*", "•", "Insight 3:"] {
            assert_eq!(strip(alone, "insight").as_deref(), Some(""), "{alone}");
        }
    }

    #[test]
    fn what_only_looks_like_a_marker_is_text() {
        for line in [
            "Klaus",
            "1.5 hours",
            "1",
            "12 people",
            "-5 degrees",
            "**Klaus** likes",
            "*Klaus*",
            "(1)",
            "(1).",
            "(1)(2)",
            "(1) [2]",
            "(1, 2) Klaus",
            "(a) Klaus",
            "Insight: Klaus",
            "Insights 1:",
            "Insightful 1:",
            "## Klaus",
            "# - Klaus",
            "",
            "(",
            "#",
            "[1] Klaus",
            "Ínsight 1: Klaus",
            "insigh",
        ] {
            assert_eq!(strip(line, "insight"), None, "{line}");
        }
    }
}
