//! Graphs as pictures, for Graphviz and Mermaid.

use super::graph::{Citation, Graph};
use crate::store::ReadError;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

/// Characters of a text that a picture shows.
const SHOWN: usize = 80;

/// What both languages draw: boxes, and arrows from what concludes to what is cited.
#[derive(Default)]
struct Picture<'g> {
    boxes: Vec<(Name, String, Style)>,
    arrows: Vec<(Name, Name)>,
    missing: HashMap<&'g str, usize>,
}

#[derive(Clone, Copy)]
enum Name {
    Id(u64),
    /// The number of a text that names no memory.
    Missing(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Memory,
    /// Cited, and not among what was asked for.
    Outside,
    /// There is no such memory.
    Broken,
}

impl Graph {
    /// The memories with these ids and what they cite, in Graphviz's language. What is cited and not among them is a
    /// box with its id alone, what is no memory a dashed one. The order of the ids does not matter; arrows of
    /// one memory come in the order of its evidence.
    ///
    /// # Errors
    /// If the bytes of a text or kind are damaged.
    pub fn to_dot(&self, ids: &[u64]) -> Result<String, ReadError> {
        let picture = self.picture(ids)?;
        let mut dot = String::from("digraph evidence {\n  node [shape=box];\n");
        for (name, label, style) in &picture.boxes {
            let style = match style {
                Style::Memory => "",
                Style::Outside => ", style=dotted",
                Style::Broken => ", style=dashed",
            };
            let label = dot_escaped(label);
            line(&mut dot, format_args!("{name} [label=\"{label}\"{style}];"));
        }
        for (from, to) in &picture.arrows {
            line(&mut dot, format_args!("{from} -> {to};"));
        }
        dot.push_str("}\n");
        Ok(dot)
    }

    /// As [`to_dot`](Graph::to_dot), as a flowchart of Mermaid.
    ///
    /// # Errors
    /// If the bytes of a text or kind are damaged.
    pub fn to_mermaid(&self, ids: &[u64]) -> Result<String, ReadError> {
        let picture = self.picture(ids)?;
        let mut mermaid = String::from("flowchart TD\n");
        for (name, label, style) in &picture.boxes {
            let class = match style {
                Style::Memory => "",
                Style::Outside => ":::outside",
                Style::Broken => ":::broken",
            };
            let label = mermaid_escaped(label);
            line(&mut mermaid, format_args!("{name}[\"{label}\"]{class}"));
        }
        for (from, to) in &picture.arrows {
            line(&mut mermaid, format_args!("{from} --> {to}"));
        }
        for (of, class, dashes) in [
            (Style::Outside, "outside", "2 4"),
            (Style::Broken, "broken", "6 4"),
        ] {
            if picture.boxes.iter().any(|&(_, _, style)| style == of) {
                line(
                    &mut mermaid,
                    format_args!("classDef {class} stroke-dasharray: {dashes}"),
                );
            }
        }
        Ok(mermaid)
    }

    fn picture(&self, ids: &[u64]) -> Result<Picture<'_>, ReadError> {
        let mut picture = Picture::default();
        let ids: BTreeSet<u64> = ids.iter().copied().collect();
        let mut others = BTreeSet::new();
        for &id in &ids {
            let (label, style) = self.label(id)?;
            picture.boxes.push((Name::Id(id), label, style));
        }
        for &id in &ids {
            for citation in self.cites(id) {
                let cited = match citation {
                    Citation::Live(cited) | Citation::Deleted(cited) | Citation::Unknown(cited) => {
                        if !ids.contains(&cited) {
                            others.insert(cited);
                        }
                        Name::Id(cited)
                    }
                    Citation::Missing(text) => picture.missing(text),
                };
                picture.arrows.push((Name::Id(id), cited));
            }
        }
        for id in others {
            let (label, style) = match self.snapshot().row_of_id(id) {
                Some(_) => (id.to_string(), Style::Outside),
                None => self.label(id)?,
            };
            picture.boxes.push((Name::Id(id), label, style));
        }
        Ok(picture)
    }

    /// What the box of an id says.
    fn label(&self, id: u64) -> Result<(String, Style), ReadError> {
        let snapshot = self.snapshot();
        Ok(match snapshot.row_of_id(id) {
            Some(row) => {
                let memory = snapshot.memory(row)?;
                let label = format!("{id} {}: {}", memory.kind, shortened(memory.text));
                (label, Style::Memory)
            }
            None if id < snapshot.next_id() => (format!("{id} was deleted"), Style::Broken),
            None => (format!("{id} is no memory"), Style::Broken),
        })
    }
}

impl<'g> Picture<'g> {
    /// The box of a text that names no memory: one for all who cite it.
    fn missing(&mut self, text: &'g str) -> Name {
        let number = self.missing.len();
        let name = Name::Missing(*self.missing.entry(text).or_insert(number));
        if self.missing.len() > number {
            self.boxes.push((name, shortened(text), Style::Broken));
        }
        name
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Name::Id(id) => write!(f, "n{id}"),
            Name::Missing(number) => write!(f, "missing{number}"),
        }
    }
}

fn line(out: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(out, "  {line}").expect("writing to a string never fails");
}

/// The beginning of a text, in one line.
fn shortened(text: &str) -> String {
    let one_line = |c: char| {
        if c.is_control() || c.is_whitespace() {
            ' '
        } else {
            c
        }
    };
    let mut chars = text.trim().chars().map(one_line);
    let mut short: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// A label between quotes: a backslash starts an escape there.
fn dot_escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A label between quotes: what could be read as Markdown, HTML or an entity is written as a number.
fn mermaid_escaped(label: &str) -> String {
    let mut escaped = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            ' ' | ',' | '.' | ':' | '\'' => escaped.push(c),
            c if c.is_ascii_punctuation() => {
                write!(escaped, "#{};", u32::from(c)).expect("writing to a string never fails");
            }
            c => escaped.push(c),
        }
    }
    escaped
}
