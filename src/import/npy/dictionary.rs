//! The dictionary in the header of a `.npy` file: a Python literal, of which only what numpy writes is read.

use super::header::HeaderError;

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, in any order.
pub(super) struct Dictionary {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

impl Dictionary {
    pub(super) fn parse(text: &[u8], offset: u64) -> Result<Dictionary, HeaderError> {
        let mut at = Cursor {
            text,
            at: 0,
            offset,
        };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        at.expect(b'{', "{")?;
        while !at.took(b'}') {
            let key = at.string()?;
            at.expect(b':', ":")?;
            let again = match key.as_str() {
                "descr" => descr.replace(at.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(at.boolean()?).is_some(),
                "shape" => shape.replace(at.tuple()?).is_some(),
                _ => true,
            };
            if again {
                return Err(at.wrong("each of descr, fortran_order and shape once"));
            }
            if !at.took(b',') {
                at.expect(b'}', "} or ,")?;
                break;
            }
        }
        at.skip_space();
        if at.at != text.len() {
            return Err(at.wrong("nothing but spaces after }"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Dictionary {
                descr,
                fortran_order,
                shape,
            }),
            _ => Err(at.wrong("each of descr, fortran_order and shape once")),
        }
    }
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    offset: u64,
}

impl Cursor<'_> {
    fn wrong(&self, expected: &'static str) -> HeaderError {
        HeaderError::Syntax {
            at: self.offset + self.at as u64,
            expected,
        }
    }

    fn run(&mut self, wanted: impl Fn(u8) -> bool) -> &[u8] {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|&b| !wanted(b)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn skip_space(&mut self) {
        self.run(|b| b.is_ascii_whitespace());
    }

    fn took(&mut self, byte: u8) -> bool {
        self.skip_space();
        let took = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(took);
        took
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), HeaderError> {
        match self.took(byte) {
            true => Ok(()),
            false => Err(self.wrong(expected)),
        }
    }

    fn string(&mut self) -> Result<String, HeaderError> {
        let quote = match (self.took(b'\''), self.text.get(self.at)) {
            (true, _) => b'\'',
            (false, Some(b'"')) => {
                self.at += 1;
                b'"'
            }
            (false, _) => return Err(self.wrong("quoted text")),
        };
        let text = self.run(|b| b != quote && b != b'\\').to_vec();
        self.expect(quote, "the end of the quoted text")?;
        String::from_utf8(text).map_err(|_| self.wrong("UTF-8"))
    }

    /// A quoted type. A list (a structured type) is given as what it is.
    fn descr(&mut self) -> Result<String, HeaderError> {
        if self.took(b'[') {
            return Err(HeaderError::Descr("a structured type".to_owned()));
        }
        self.string()
    }

    fn boolean(&mut self) -> Result<bool, HeaderError> {
        self.skip_space();
        match self.run(|b| b.is_ascii_alphabetic()) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(self.wrong("True or False")),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, HeaderError> {
        let mut numbers = Vec::new();
        self.expect(b'(', "(")?;
        while !self.took(b')') {
            let digits = self.run(|b| b.is_ascii_digit());
            let number = std::str::from_utf8(digits)
                .ok()
                .and_then(|d| d.parse().ok());
            numbers.push(number.ok_or_else(|| self.wrong("a number of 64 bits"))?);
            // Python 2 wrote 3L.
            self.run(|b| b == b'L');
            if !self.took(b',') {
                self.expect(b')', ") or ,")?;
                break;
            }
        }
        Ok(numbers)
    }
}
