//! Charts, as far as a test can look at them.

use std::collections::BTreeSet;

/// The names of the elements, if the document is well-formed as far as a chart goes: elements are nested,
/// attributes quoted, references known.
pub fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut names) = (Vec::new(), Vec::new());
    let text = |text: &str| {
        for reference in text.split('&').skip(1) {
            let name = reference.split_once(';').expect("a reference ends").0;
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "&{name};");
        }
        assert!(!text.contains('>'), "{text}");
    };
    let mut rest = xml.trim_end();
    while let Some((before, after)) = rest.split_once('<') {
        assert!(open.last().is_some() || before.is_empty(), "{before}");
        text(before);
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name.to_owned()));
            continue;
        }
        let (tag, closed) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut seen = BTreeSet::new();
        while !attributes.is_empty() {
            let (name, after) = attributes.split_once("=\"").expect("a quoted value");
            let (value, after) = after.split_once('"').expect("the value ends");
            text(value);
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
            assert!(seen.insert(name), "{name} twice in {tag}");
            attributes = after.strip_prefix(' ').unwrap_or(after);
        }
        names.push(name.to_owned());
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
    names
}
