//! The filter: has this fingerprint been seen before?
