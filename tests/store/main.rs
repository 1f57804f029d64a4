//! The store through its public API. Names say the behaviour; a comment names the trial.

mod append;
mod damage;
mod example;
mod model;
mod open;
mod processes;
mod refused;
mod round_trip;
mod touch;
