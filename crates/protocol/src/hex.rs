//! Bytes in hexadecimal, as digests and trace ids are written.

/// Two lower-case digits a byte.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    // One allocation: a digest is made for every message.
    let mut text = String::with_capacity(bytes.len() * 2);
    text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(hex(&[]), "");
    }
}
