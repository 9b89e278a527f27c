//! Tests of the storage folder as a whole, on a disk with every kind of fault.

mod archive;
mod basic;
mod counts;
mod damage;
mod faults;
mod filter;
mod fixture;
mod imports;
mod keeping;
mod looking;
mod poison;
mod random;
mod real;
mod record;
mod whole;
mod world;

use super::testing;
