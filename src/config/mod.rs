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
