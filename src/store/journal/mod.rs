//! The journal: what was appended and changed since the columns were last written, as bytes.
//!
//! Here is only what needs no file: `segment` knows a segment's name and header, `record` and `decode` what
//! follows them, `replay` what a journal that was found says, and `salvage` what of a damaged one can be used. [`format`](mod@crate::store::format)
//! describes the bytes.
//!
//! **What it promises**
//!
//! - A record comes out as it was put in, or it does not come out. No length in the bytes is trusted,
//!   and no bytes panic.
//! - What comes out can be stored: text is UTF-8, numbers are finite where columns promise it, an
//!   embedding has the length of the store's.
//! - Records come in the order of their sequence numbers, without a gap. What stands after the last
//!   that can be read is given up only where nothing says that it was durable, and it is reported.
//!   Where something says so, it is [`Damage`](crate::store::Damage).

mod decode;
mod record;
mod replay;
mod salvage;
mod segment;

pub(super) use record::{
    Body, Ids, NOT_TOUCHED, Numbers, Place, Record, Row, Seen, TooLong, Touch, Vector, encode, seal,
};
pub use replay::Dropped;
pub(super) use replay::{Replay, Segment};
pub(super) use salvage::{header_of, is_continuation, salvage};
pub(super) use segment::{HEADER_BYTES, Header, Origin, Takeover, file_name, number_in};
