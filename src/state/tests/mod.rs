//! The state folder as a whole, on a disk that can do its worst.

mod basic;
mod faults;
mod filter;
mod keeping;
mod looking;
mod random;
mod sim;
mod world;
