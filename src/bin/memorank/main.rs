//! The `memorank` program.
fn main() {}
