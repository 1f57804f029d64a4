//! What the simulator loses, and what it keeps.
