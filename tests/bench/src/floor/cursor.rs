//! A pull parser over JSON text: strings are scanned eight bytes at a time, values stay borrowed.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The text is not what the floor expects, at this byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bad(pub usize);

pub(crate) struct Cursor<'a> {
    text: &'a str,
    pub(crate) at: usize,
}

/// The text between two quotes, and whether there are escapes in it.
pub(crate) struct Raw<'a> {
    pub(crate) text: &'a str,
    pub(crate) escaped: bool,
}

const fn matches(word: u64, byte: u8) -> u64 {
    let zeros = word ^ (ONES * byte as u64);
    zeros.wrapping_sub(ONES) & !zeros & HIGHS
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn word(&self, at: usize) -> Option<u64> {
        self.text.as_bytes().get(at..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub(crate) const fn bad<T>(&self) -> Result<T, Bad> {
        Err(Bad(self.at))
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Bad> {
        self.blanks();
        if self.peek() != byte {
            return self.bad();
        }
        self.at += 1;
        Ok(())
    }

    pub(crate) fn literal(&mut self, text: &[u8]) -> bool {
        let found = self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text));
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// What stands between two members: whether there is another one.
    pub(crate) fn next_member(&mut self, close: u8) -> Result<bool, Bad> {
        self.blanks();
        let byte = self.peek();
        self.at += 1;
        match byte {
            b',' => {
                self.blanks();
                Ok(true)
            }
            _ if byte == close => Ok(false),
            _ => self.bad(),
        }
    }

    pub(crate) fn key(&mut self) -> Result<&'a str, Bad> {
        self.expect(b'"')?;
        let key = self.string()?.text;
        self.expect(b':')?;
        Ok(key)
    }

    /// The string behind the quote that was read.
    pub(crate) fn string(&mut self) -> Result<Raw<'a>, Bad> {
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.until_special() {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => return self.bad(),
            }
        }
        let text = self.text.get(start..self.at).ok_or(Bad(start))?;
        self.at += 1;
        Ok(Raw { text, escaped })
    }

    /// Moves to the next quote, backslash or control byte; 0 at the end.
    fn until_special(&mut self) -> u8 {
        while let Some(word) = self.word(self.at) {
            let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
            let found = matches(word, b'"') | matches(word, b'\\') | control;
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return self.peek();
            }
            self.at += 8;
        }
        while !matches!(self.peek(), b'"' | b'\\' | 0..0x20) {
            self.at += 1;
        }
        self.peek()
    }

    /// A long string without escapes, behind its quote: base64.
    pub(crate) fn long_string(&mut self) -> Result<&'a str, Bad> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = memchr::memchr2(b'"', b'\\', rest).filter(|length| rest[*length] == b'"').ok_or(Bad(self.at))?;
        let text = &self.text[self.at..self.at + length];
        self.at += length + 1;
        Ok(text)
    }

    /// An integer of at most 18 digits.
    pub(crate) fn integer(&mut self) -> Result<i64, Bad> {
        self.blanks();
        let negative = self.peek() == b'-';
        self.at += usize::from(negative);
        let start = self.at;
        let mut value = 0_u64;
        while let Some(eight) = self.word(self.at).and_then(eight_digits) {
            value = value.wrapping_mul(100_000_000).wrapping_add(eight);
            self.at += 8;
        }
        while self.peek().is_ascii_digit() {
            value = value.wrapping_mul(10).wrapping_add(u64::from(self.peek() - b'0'));
            self.at += 1;
        }
        if !(1..=18).contains(&(self.at - start)) || matches!(self.peek(), b'.' | b'e' | b'E') {
            return self.bad();
        }
        let value = value.cast_signed();
        Ok(if negative { -value } else { value })
    }

    /// The source text of the next value, whatever it is.
    pub(crate) fn raw_value(&mut self) -> Result<&'a str, Bad> {
        self.blanks();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    pub(crate) fn skip(&mut self) -> Result<(), Bad> {
        self.blanks();
        match self.peek() {
            b'"' => {
                self.at += 1;
                self.string().map(drop)
            }
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let start = self.at;
                while matches!(self.peek(), b'0'..=b'9' | b'a'..=b'z' | b'-' | b'+' | b'.' | b'E') {
                    self.at += 1;
                }
                if self.at > start { Ok(()) } else { self.bad() }
            }
        }
    }

    fn skip_nested(&mut self) -> Result<(), Bad> {
        let mut depth = 0_usize;
        loop {
            match self.until_structure() {
                b'"' => {
                    self.at += 1;
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => return self.bad(),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Moves to the next quote or bracket; 0 at the end.
    fn until_structure(&mut self) -> u8 {
        while let Some(word) = self.word(self.at) {
            let folded = word | (ONES * 0x20);
            let found = matches(word, b'"') | matches(folded, b'{') | matches(folded, b'}');
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return self.peek();
            }
            self.at += 8;
        }
        while !matches!(self.peek(), b'"' | b'{' | b'}' | b'[' | b']' | 0) {
            self.at += 1;
        }
        self.peek()
    }
}

/// Eight ASCII digits as a number.
const fn eight_digits(word: u64) -> Option<u64> {
    const FIRST_AND_FIFTH: u64 = 0x0000_00ff_0000_00ff;
    let digits = word.wrapping_sub(0x3030_3030_3030_3030);
    if (word.wrapping_add(0x4646_4646_4646_4646) | digits) & HIGHS != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & FIRST_AND_FIFTH).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & FIRST_AND_FIFTH).wrapping_mul(0x0000_2710_0000_0001);
    Some(low.wrapping_add(high) >> 32)
}

/// Replaces escapes; surrogate pairs do not occur in the generated event.
pub(crate) fn unescape(raw: &str, out: &mut String) -> Option<()> {
    out.clear();
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let width = match rest.as_bytes().get(at + 1)? {
            b'n' => push(out, '\n'),
            b't' => push(out, '\t'),
            b'r' => push(out, '\r'),
            b'b' => push(out, '\u{8}'),
            b'f' => push(out, '\u{c}'),
            b'u' => {
                let code = u32::from_str_radix(rest.get(at + 2..at + 6)?, 16).ok()?;
                push(out, char::from_u32(code)?) + 4
            }
            other => push(out, char::from(*other)),
        };
        rest = rest.get(at + width..)?;
    }
    out.push_str(rest);
    Some(())
}

fn push(out: &mut String, character: char) -> usize {
    out.push(character);
    2
}
