//! Request that a consumer holds, as Redis stores it.

/// Request that a consumer popped and has not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRequest {
    /// Delivery id, unique among the deliveries of the consumer.
    pub delivery: String,
    /// Number of earlier deliveries of the request.
    pub count: u64,
    /// Item as popped, byte for byte.
    pub item: Vec<u8>,
}

impl HeldRequest {
    /// Reads the value of a held request in Redis. If another program wrote the value, the item is
    /// the value, and the second result is false.
    pub(crate) fn read(delivery: &[u8], value: &[u8]) -> (Self, bool) {
        let delivery = String::from_utf8_lossy(delivery).into_owned();
        match Self::parse(delivery.clone(), value) {
            Some(request) => (request, true),
            None => (Self { delivery, count: 0, item: value.to_vec() }, false),
        }
    }

    /// Reads the value of a held request in Redis: `SCORE COUNT BYTES`. Returns `None` for any
    /// other value.
    pub(crate) fn parse(delivery: String, value: &[u8]) -> Option<Self> {
        let mut parts = value.splitn(3, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        text()?.parse::<f64>().ok()?;
        let count = text()?.parse().ok()?;
        Some(Self { delivery, count, item: parts.next()?.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_value_has_score_count_and_bytes() {
        let held = HeldRequest::parse("7".to_owned(), b"-1.5e3 2 a b\n\xff").unwrap();
        assert_eq!((held.count, &held.item[..]), (2, &b"a b\n\xff"[..]));
        assert_eq!(HeldRequest::parse("7".to_owned(), b"inf 0 ").unwrap().item, b"");
        for other in [&b""[..], b"1", b"1 2", b"x 0 a", b"0 -1 a", b"0 x a"] {
            assert_eq!(HeldRequest::parse("7".to_owned(), other), None);
        }
    }
}
