//! A store as plain files, and back. Names say the behaviour; a comment names the trial.

mod example;
mod gaps;
mod hostile;
mod refused;
mod round_trip;
mod trials;
