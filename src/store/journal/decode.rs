//! Bodies of records, read. Decoding borrows from the bytes and trusts none of them: every length is checked
//! against what is left before it is used.

use super::record::{
    APPEND, Body, DELETE, EMBED, HEAD_BYTES, Head, IMPORTANCE, Ids, Numbers, Record, Row, Seen,
    TOUCH, Touch, Vector,
};
use crate::store::evidence;
use crate::store::format::{NO_EXPIRY, SUPERSEDES_NOTHING};
use bytemuck::Pod;

/// Bytes that have the right sum and are no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecodable {
    /// From the start of the record.
    pub(super) at: usize,
    pub(super) what: &'static str,
}

/// Decodes `record`, which `head` stands at the start of, for a store whose embeddings have so many bytes.
pub(super) fn decode<'a>(
    head: &Head,
    record: &'a [u8],
    embedding_bytes: usize,
) -> Result<Record<'a>, Undecodable> {
    let mut reader = Reader {
        bytes: record,
        at: HEAD_BYTES,
    };
    let body = match reader.u8()? {
        APPEND => {
            let at = reader.at;
            let first_id = reader.u64()?;
            let count = reader.u32()?;
            if first_id.checked_add(count.into()).is_none() {
                return Err(Undecodable {
                    at,
                    what: "its ids are more than there are",
                });
            }
            // Not sized by the count: it may be anything.
            let mut rows = Vec::new();
            for _ in 0..count {
                rows.push(reader.row(embedding_bytes)?);
            }
            Body::Append { first_id, rows }
        }
        TOUCH => {
            let (agent, now) = (reader.u32()?, reader.i64()?);
            let seen = reader.seen(head.sequence)?;
            let ids = reader.ids()?;
            Body::Touch(Touch {
                agent,
                now,
                seen,
                ids,
                before: reader.numbers(ids.len())?,
                note: reader.span()?,
            })
        }
        DELETE => Body::Delete { ids: reader.ids()? },
        EMBED => {
            let count = reader.u32()?;
            // Not sized by the count: it may be anything.
            let mut vectors = Vec::new();
            for _ in 0..count {
                vectors.push((reader.u64()?, reader.vector(embedding_bytes)?));
            }
            Body::Embed { vectors }
        }
        IMPORTANCE => {
            let (agent, importance) = (reader.u32()?, reader.importance_or_none()?);
            let ids = reader.ids()?;
            Body::Importance {
                agent,
                importance,
                ids,
                before: reader.importances_before(ids.len())?,
            }
        }
        _ => {
            return Err(Undecodable {
                at: HEAD_BYTES,
                what: "it is of an unknown kind",
            });
        }
    };
    if reader.at != record.len() {
        return Err(Undecodable {
            at: reader.at,
            what: "something follows it",
        });
    }
    Ok(Record {
        sequence: head.sequence,
        durable: head.durable,
        body,
        bytes: record,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Undecodable> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..len) else {
            return Err(Undecodable {
                at: self.at,
                what: "it is shorter than it says",
            });
        };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Undecodable> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    fn u8(&mut self) -> Result<u8, Undecodable> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Undecodable> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Undecodable> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, Undecodable> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn f32(&mut self) -> Result<f32, Undecodable> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    /// Bytes with their length before them.
    fn span(&mut self) -> Result<&'a [u8], Undecodable> {
        let len = self.u32()?;
        // More than can be addressed is more than there is.
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn string(&mut self) -> Result<&'a str, Undecodable> {
        let bytes = self.span()?;
        std::str::from_utf8(bytes).map_err(|e| Undecodable {
            at: self.at - bytes.len() + e.valid_up_to(),
            what: "a text in it is not UTF-8",
        })
    }

    fn ids(&mut self) -> Result<Ids<'a>, Undecodable> {
        let count = self.u32()?;
        self.numbers(usize::try_from(count).unwrap_or(usize::MAX))
    }

    fn numbers<T: Pod>(&mut self, count: usize) -> Result<Numbers<'a, T>, Undecodable> {
        let bytes = count.saturating_mul(size_of::<T>());
        Ok(Numbers::of(self.take(bytes)?))
    }

    /// A value, if it is one that a column may hold.
    fn allowed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Undecodable>,
        allowed: impl FnOnce(&T) -> bool,
        what: &'static str,
    ) -> Result<T, Undecodable> {
        let at = self.at;
        let value = read(self)?;
        match allowed(&value) {
            true => Ok(value),
            false => Err(Undecodable { at, what }),
        }
    }

    /// What the retrieval of the touch `sequence` saw: what came before it.
    fn seen(&mut self, sequence: u64) -> Result<Seen, Undecodable> {
        let what = "it saw what came after it";
        let seen = self.allowed(Self::u64, |&seen| seen < sequence, what)?;
        let next_id = self.u64()?;
        let touches = seen + 1..sequence;
        let is_touch = |touch: &u64| *touch == 0 || touches.contains(touch);
        let touch = self.allowed(Self::u64, is_touch, what)?;
        Ok(Seen {
            sequence: seen,
            next_id,
            touch: (touch != 0).then_some(touch),
        })
    }

    fn importance(&mut self) -> Result<f32, Undecodable> {
        self.allowed(
            Self::f32,
            is_importance,
            "an importance in it is not finite, or -0",
        )
    }

    fn importances_before(&mut self, count: usize) -> Result<Numbers<'a, f32>, Undecodable> {
        let at = self.at;
        let before: Numbers<'_, f32> = self.numbers(count)?;
        let is_none = |x: &f32| x.to_bits() == f32::NAN.to_bits();
        match (before.iter()).position(|x| !is_none(&x) && !is_importance(&x)) {
            None => Ok(before),
            Some(wrong) => Err(Undecodable {
                at: at + wrong * size_of::<f32>(),
                what: "an importance in it is neither finite nor none, or -0",
            }),
        }
    }

    fn importance_or_none(&mut self) -> Result<Option<f32>, Undecodable> {
        let what = "neither an importance nor none is in it";
        match self.allowed(Self::u8, |&flag| flag <= 1, what)? {
            0 => Ok(None),
            _ => self.importance().map(Some),
        }
    }

    fn vector(&mut self, embedding_bytes: usize) -> Result<Vector<'a>, Undecodable> {
        Ok(Vector {
            inv_norm: self.allowed(
                Self::f32,
                |x| x.is_finite() && *x > 0.0,
                "an inverse norm in it is not finite and above 0",
            )?,
            elements: self.take(embedding_bytes)?,
        })
    }

    fn row(&mut self, embedding_bytes: usize) -> Result<Row<'a>, Undecodable> {
        let created = self.i64()?;
        let last_access = self.i64()?;
        let expiry = self.i64()?;
        let importance = self.importance()?;
        let depth = self.u32()?;
        let supersedes = self.u64()?;
        let inv_norm = self.allowed(
            Self::f32,
            |x| x.is_finite() && x.is_sign_positive(),
            "an inverse norm in it is not finite, or negative",
        )?;
        // An inverse norm of 0 is how a column says "no vector".
        let has_vector = self.allowed(
            Self::u8,
            |&flag| flag == u8::from(inv_norm != 0.0),
            "an embedding in it contradicts its inverse norm",
        )?;
        let kind = self.allowed(
            Self::string,
            |kind| !kind.is_empty(),
            "a kind in it has no name",
        )?;
        let key = self.string()?;
        let text = self.string()?;
        let payload = self.span()?;
        let evidence = self.span()?;
        if let Err((at, _)) = evidence::decode(evidence) {
            return Err(Undecodable {
                at: self.at - evidence.len() + at,
                what: "evidence in it cannot be decoded",
            });
        }
        let vector = match has_vector {
            0 => None,
            _ => Some(Vector {
                inv_norm,
                elements: self.take(embedding_bytes)?,
            }),
        };
        Ok(Row {
            key: (!key.is_empty()).then_some(key),
            kind,
            text,
            vector,
            created,
            last_access,
            expiry: (expiry != NO_EXPIRY).then_some(expiry),
            importance,
            evidence,
            depth,
            supersedes: (supersedes != SUPERSEDES_NOTHING).then_some(supersedes),
            payload,
        })
    }
}

fn is_importance(x: &f32) -> bool {
    x.is_finite() && x.to_bits() != (-0.0_f32).to_bits()
}
