//! What can go wrong, and the exit code each has.

use crate::output::escaped;
use memorank::export::ExportError;
use memorank::import::ImportError;
use memorank::kernel::IsaError;
use memorank::scoring::RankError;
use memorank::store::{
    AppendError, CreateError, DeleteError, EmbedError, HistoryError, ImportanceError, OpenError,
    ReadError, TouchError, WriteError,
};
use memorank::stream::StreamError;
use memorank::stream::evidence::DeletionError;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

pub enum Failure {
    /// Exit code 1.
    Error(Box<dyn Error + Send + Sync>),
    /// Exit code 2.
    Usage(String),
    /// Exit code 3.
    Damage(Box<dyn Error + Send + Sync>),
    /// Exit code 3, already told in the output.
    DamageTold,
    /// Whoever read our output has seen enough: exit code 0.
    ClosedPipe,
}

impl Failure {
    /// Damage that was met on the way.
    pub fn damaged(what: String) -> Failure {
        Failure::Damage(format!("{what}; `memorank verify` lists all damage").into())
    }

    /// The same, of one thing among several.
    pub fn about(self, what: String) -> Failure {
        match self {
            Failure::Error(e) => Failure::Error(format!("{what}: {e}").into()),
            Failure::Usage(message) => Failure::Usage(format!("{what}: {message}")),
            Failure::Damage(e) => Failure::Damage(format!("{what}: {e}").into()),
            told @ (Failure::DamageTold | Failure::ClosedPipe) => told,
        }
    }

    pub fn report(self) -> ExitCode {
        let (code, message) = match self {
            Failure::Error(e) => (1, e.to_string()),
            Failure::Usage(message) => (2, message),
            Failure::Damage(e) => (3, e.to_string()),
            Failure::DamageTold => return ExitCode::from(3),
            Failure::ClosedPipe => return ExitCode::SUCCESS,
        };
        // If even that cannot be told, the exit code still does.
        let _ = writeln!(io::stderr(), "memorank: {}", escaped(&message));
        ExitCode::from(code)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(e: OpenError) -> Failure {
        match e {
            OpenError::Foreign { .. }
            | OpenError::ManifestCut { .. }
            | OpenError::ManifestChecksum { .. }
            | OpenError::ManifestDamaged { .. }
            | OpenError::ColumnMissing { .. }
            | OpenError::ColumnCut { .. }
            | OpenError::Damaged { .. } => Failure::Damage(e.into()),
            // What is no store, or not to be had, is not damaged.
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(e: ReadError) -> Failure {
        match e {
            ReadError::Damaged(_) => Failure::Damage(e.into()),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<HistoryError> for Failure {
    fn from(e: HistoryError) -> Failure {
        match e {
            HistoryError::Damaged(_) => Failure::Damage(e.into()),
            // Here the remedies are commands.
            HistoryError::NotATouch { sequence } => Failure::Error(
                format!("record {sequence} is not a touch; `memorank history` lists those").into(),
            ),
            HistoryError::NotKept {
                sequence,
                needed,
                oldest,
            } => Failure::Error(
                format!(
                    "record {sequence} needs the journal from record {needed} on, which is kept from record \
                     {oldest} on; `memorank history --keep` has more kept from now on"
                )
                .into(),
            ),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<StreamError> for Failure {
    fn from(e: StreamError) -> Failure {
        match e {
            StreamError::Rank(e) => e.into(),
            StreamError::Read(e) => e.into(),
            // Decays by kind come from the command line.
            StreamError::Decays(e) => Failure::Usage(format!("--decay: {e}")),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<RankError> for Failure {
    fn from(e: RankError) -> Failure {
        match e {
            // Weights and decays come from the command line.
            RankError::Scoring(e) => Failure::Usage(e.to_string()),
            // The store was checked when it was written: what is not finite now is damage.
            RankError::Cosine { .. }
            | RankError::InverseNorm { .. }
            | RankError::Importance { .. } => {
                Failure::damaged(format!("the store is damaged: {e}"))
            }
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<IsaError> for Failure {
    fn from(e: IsaError) -> Failure {
        Failure::Usage(format!("MEMORANK_ISA: {e}"))
    }
}

impl From<WriteError> for Failure {
    fn from(e: WriteError) -> Failure {
        match e {
            WriteError::Damaged(_) => Failure::Damage(e.into()),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(e: CreateError) -> Failure {
        Failure::Error(e.into())
    }
}

impl From<AppendError> for Failure {
    fn from(e: AppendError) -> Failure {
        match e {
            AppendError::Write(e) => e.into(),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<EmbedError> for Failure {
    fn from(e: EmbedError) -> Failure {
        match e {
            EmbedError::Write(e) => e.into(),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<TouchError> for Failure {
    fn from(e: TouchError) -> Failure {
        match e {
            TouchError::Write(e) => e.into(),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<ImportanceError> for Failure {
    fn from(e: ImportanceError) -> Failure {
        match e {
            ImportanceError::Write(e) => e.into(),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<DeleteError> for Failure {
    fn from(e: DeleteError) -> Failure {
        match e {
            DeleteError::Write(e) => e.into(),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<DeletionError> for Failure {
    fn from(e: DeletionError) -> Failure {
        match e {
            DeletionError::Read(e) => e.into(),
            DeletionError::Write(e) => e.into(),
            DeletionError::Delete(e) => e.into(),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(e: ExportError) -> Failure {
        match e {
            ExportError::Read(e) => e.into(),
            ExportError::Importance { .. } => Failure::Damage(e.into()),
            _ => Failure::Error(e.into()),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(e: ImportError) -> Failure {
        Failure::Error(e.into())
    }
}
