//! Filter in front of a database: a name that the filter has not seen needs no lookup.
//!
//! ```text
//! cargo run --release --example lookups
//! ```
//!
//! The program makes a database of users in a temporary folder, and looks up a million names. Most
//! of them are not in the database. It measures the time of the lookups without a filter, and with
//! a filter that has all names of the database.

use std::error::Error;
use std::time::Instant;

use redb::{Database, ReadOnlyTable, ReadableDatabase, TableDefinition};
use urlseen::{Filter, FilterExt, FilterSpec, LocalFilter};

const USERS: TableDefinition<'_, &str, u64> = TableDefinition::new("users");

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Result of looking up many names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// Number of names that the database has.
    names: u64,
    /// Number of lookups in the database.
    asked: u64,
}

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let database = Database::create(folder.path().join("users.redb"))?;
    let users = fill(&database, 200_000)?;
    let filter = LocalFilter::new(&FilterSpec::native(200_000, 1e-4))?;
    filter.extend((0..200_000).map(name))?;

    // One of 20 names is in the database.
    let wanted: Vec<String> = (0..1_000_000).map(|number| name(number * 7 % 4_000_000)).collect();
    let begun = Instant::now();
    let without = look_up(&users, None, &wanted)?;
    let without_filter = begun.elapsed();
    let begun = Instant::now();
    let with = look_up(&users, Some(&filter), &wanted)?;
    let with_filter = begun.elapsed();

    println!("without a filter: {without:?} in {without_filter:.2?}");
    println!("with one of {} KiB: {with:?} in {with_filter:.2?}", filter.bits() / 8 / 1024);
    if with.names != without.names {
        return Err("the filter hid a name".into());
    }
    Ok(())
}

fn name(number: u64) -> String {
    format!("user-{number}")
}

/// Writes this number of users to the database.
fn fill(database: &Database, users: u64) -> Outcome<ReadOnlyTable<&'static str, u64>> {
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(USERS)?;
        for number in 0..users {
            table.insert(name(number).as_str(), number)?;
        }
    }
    writing.commit()?;
    Ok(database.begin_read()?.open_table(USERS)?)
}

/// Looks names up. "Unseen" is certain, so a name that is unseen in the filter is not in the
/// database.
fn look_up(
    users: &ReadOnlyTable<&'static str, u64>,
    filter: Option<&dyn Filter>,
    wanted: &[String],
) -> Outcome<Found> {
    let mut found = Found { names: 0, asked: 0 };
    for name in wanted {
        if filter.is_none_or(|filter| filter.contains(name.as_str()).unwrap_or(true)) {
            found.asked += 1;
            found.names += u64::from(users.get(name.as_str())?.is_some());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_missed_and_few_lookups_are_in_vain() -> Outcome<()> {
        let folder = tempfile::tempdir()?;
        let database = Database::create(folder.path().join("users.redb"))?;
        let users = fill(&database, 1000)?;
        let filter = LocalFilter::new(&FilterSpec::native(1000, 1e-4))?;
        filter.extend((0..1000).map(name))?;
        let wanted: Vec<String> = (0..20_000).map(name).collect();
        assert_eq!(look_up(&users, None, &wanted)?, Found { names: 1000, asked: 20_000 });
        let with = look_up(&users, Some(&filter), &wanted)?;
        assert_eq!(with.names, 1000);
        assert!((1000..1050).contains(&with.asked), "{with:?}");
        Ok(())
    }
}
