//! Counts of 1 bits in two filters.

/// Counts of 1 bits: in filter A, in filter B, and in the OR of both filters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Ones {
    /// Number of bits that are 1 in A.
    pub a: u64,
    /// Number of bits that are 1 in B.
    pub b: u64,
    /// Number of positions at which A, B or both have a 1.
    pub union: u64,
}

impl Ones {
    /// Counts the bits of two pages: one page of A, and the page of B at the same position. The
    /// missing bytes of a shorter page count as zeros.
    pub fn add(&mut self, a: &[u8], b: &[u8]) {
        let both = a.len().min(b.len());
        let (words_a, rest_a) = a[..both].as_chunks::<8>();
        let (words_b, rest_b) = b[..both].as_chunks::<8>();
        let words = words_a.iter().zip(words_b).map(|(a, b)| {
            u64::from((u64::from_ne_bytes(*a) | u64::from_ne_bytes(*b)).count_ones())
        });
        let rest = rest_a.iter().zip(rest_b).map(|(a, b)| u64::from((a | b).count_ones()));
        let union = words.sum::<u64>() + rest.sum::<u64>();
        self.a += count(a);
        self.b += count(b);
        self.union += union + count(&a[both..]) + count(&b[both..]);
    }

    /// Returns the number of positions at which both A and B have a 1.
    pub fn intersection(&self) -> u64 {
        self.a + self.b - self.union
    }
}

impl std::ops::AddAssign for Ones {
    fn add_assign(&mut self, other: Self) {
        self.a += other.a;
        self.b += other.b;
        self.union += other.union;
    }
}

/// Returns the number of bits that are 1.
fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones()));
    words.sum::<u64>() + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}
