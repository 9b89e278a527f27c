//! Items: the forms in which requests come.

pub mod json;
