//! The instruction sets a kernel is written for, and which of them this machine has.

use std::fmt;
use std::str::FromStr;

/// An instruction set with a kernel of its own. All of them give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Plain loops that say the contract. Slow: the reference of the tests.
    Scalar,
    /// Vectors of the `wide` crate, as wide as the target the crate was compiled for.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 (F, VL and DQ), beside all of AVX2.
    Avx512,
}

impl Isa {
    /// Every instruction set, slowest first.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Portable, Isa::Avx2, Isa::Avx512];

    /// Whether this machine has it, operating system support included.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar | Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// The fastest instruction set of this machine.
    pub fn best() -> Isa {
        if Isa::Avx512.is_available() {
            Isa::Avx512
        } else if Isa::Avx2.is_available() {
            Isa::Avx2
        } else {
            Isa::Portable
        }
    }

    /// The instruction set named by the environment variable `MEMORANK_ISA`, or [`Isa::best`] if
    /// it is unset. The library never reads the environment on its own: programs, tests and benches
    /// call this.
    ///
    /// # Errors
    /// An unknown name, or an instruction set that this machine lacks. Never a fallback.
    pub fn from_env() -> Result<Isa, IsaError> {
        let Some(name) = std::env::var_os("MEMORANK_ISA") else {
            return Ok(Isa::best());
        };
        let isa: Isa = name.to_string_lossy().parse()?;
        if isa.is_available() {
            Ok(isa)
        } else {
            Err(IsaError::Missing(isa))
        }
    }

    /// `"scalar"`, `"portable"`, `"avx2"` or `"avx512"`.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Isa, IsaError> {
        Isa::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| IsaError::Unknown(name.to_owned()))
    }
}

/// Why an instruction set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsaError {
    /// No instruction set has this name.
    Unknown(String),
    /// This machine lacks it.
    Missing(Isa),
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IsaError::Unknown(name) => {
                write!(
                    f,
                    "unknown instruction set {name:?}; use scalar, portable, avx2 or avx512"
                )
            }
            IsaError::Missing(isa) => {
                write!(f, "this machine has no {isa}; its best is {}", Isa::best())
            }
        }
    }
}

impl std::error::Error for IsaError {}
