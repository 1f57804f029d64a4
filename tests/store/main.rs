//! The store through its public API. Names say the behaviour; a comment names the trial.

mod append;
mod damage;
mod example;
mod in_memory;
mod model;
mod open;
mod processes;
mod refused;
mod round_trip;
mod touch;
