//! What to say of a check that fails.

/// Says, if a check fails while it lives, what was being checked.
pub struct OnPanic<F: Fn() -> String>(pub F);

impl<F: Fn() -> String> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0());
        }
    }
}
