//! The escapes of JSON strings (RFC 8259 section 7).

/// Replaces the escapes of a string that the parser has checked.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(length) = text[at..].find('\\') {
        out.push_str(&text[at..at + length]);
        at += length;
        let (character, width) = escaped_char(text, at);
        out.push(character);
        at += width;
    }
    out.push_str(&text[at..]);
    out
}

/// The character that the checked escape at byte `at` stands for, and the escape's length in bytes.
fn escaped_char(text: &str, at: usize) -> (char, usize) {
    match text.as_bytes().get(at + 1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => {
            let first = hex4(text, at).unwrap_or(0xfffd);
            match char::from_u32(first) {
                Some(character) => (character, 6),
                None => {
                    let second = hex4(text, at + 6).unwrap_or(0xdc00);
                    let code = 0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
                    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                }
            }
        }
        Some(other) => (char::from(*other), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// The value of `\uXXXX` at byte `at`.
pub(super) fn hex4(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}
