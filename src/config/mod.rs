//! The configuration, checked.
