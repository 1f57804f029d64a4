//! A row's evidence as bytes, as `format` lays it out.

use super::memory::Reference;

const ID: u8 = 0;
const MISSING: u8 = 1;

pub(super) fn encode(evidence: &[Reference], out: &mut Vec<u8>) {
    for reference in evidence {
        match reference {
            Reference::Id(id) => {
                out.push(ID);
                out.extend(id.to_le_bytes());
            }
            Reference::Missing(text) => {
                out.push(MISSING);
                out.extend((text.len() as u64).to_le_bytes());
                out.extend(text.as_bytes());
            }
        }
    }
}

/// The references in `bytes`, or where they cannot be decoded and why.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Reference>, (usize, &'static str)> {
    let mut evidence = Vec::new();
    let mut rest = bytes;
    while let Some((&tag, after)) = rest.split_first() {
        let at = bytes.len() - rest.len();
        let Some((number, after)) = after.split_first_chunk::<8>() else {
            return Err((at, "it ends inside a number"));
        };
        let number = u64::from_le_bytes(*number);
        rest = after;
        evidence.push(match tag {
            ID => Reference::Id(number),
            MISSING => {
                let text = usize::try_from(number).ok();
                let Some((text, after)) = text.and_then(|n| rest.split_at_checked(n)) else {
                    return Err((at, "it ends inside a text"));
                };
                let Ok(text) = std::str::from_utf8(text) else {
                    return Err((at, "a text is not UTF-8"));
                };
                rest = after;
                Reference::Missing(text.to_owned())
            }
            _ => return Err((at, "an unknown tag")),
        });
    }
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<Reference> {
        vec![
            Reference::Id(3),
            Reference::Missing("node_17".into()),
            Reference::Id(u64::MAX),
            Reference::Missing(String::new()),
            Reference::Id(3),
        ]
    }

    #[test]
    fn evidence_keeps_order_and_duplicates() {
        let mut bytes = Vec::new();
        encode(&example(), &mut bytes);
        assert_eq!(bytes[..9], [0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode(&bytes), Ok(example()));
        assert_eq!(decode(&[]), Ok(vec![]));
    }

    #[test]
    fn no_cut_or_flip_panics() {
        let mut bytes = Vec::new();
        encode(&example(), &mut bytes);
        for cut in 0..bytes.len() {
            if let Ok(some) = decode(&bytes[..cut]) {
                assert_eq!(some, example()[..some.len()]);
            }
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(decode(&bytes), Ok(example()));
        }
    }
}
