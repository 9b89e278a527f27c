//! The configuration, checked.
#![allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemForm {
    Auto,
    Url,
    Json,
    Fingerprint,
    Tab,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    Item,
    Url,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    Warn,
    Stop,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectsFull {
    Wait,
    DropOldest,
}

pub struct Source {
    pub key: String,
    pub take_from: End,
    pub item: ItemForm,
    pub batch: usize,
    pub batch_bytes: usize,
}
pub struct Sink {
    pub key: String,
    pub push_to: End,
    pub emit: Emit,
    pub max_len: u64,
}
