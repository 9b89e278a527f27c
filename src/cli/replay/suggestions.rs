//! Output of `urlseen replay --suggest`.

use std::io::{self, Write};

use urlseen_analysis::{Suggestion, Suggestions, grouped};

use super::super::rows::Rows;
use crate::admin::printable::{json_text, printable, stdout};

/// Maximum number of examples of a rule that are printed for people.
const EXAMPLES: usize = 3;

/// Prints suggested rules on standard output.
pub(super) fn print(as_json: bool, found: &Suggestions) -> anyhow::Result<()> {
    let mut out = stdout();
    if as_json {
        writeln!(out, "{}", json_text(&serde_json::to_string(found)?))?;
    } else {
        table(found, &mut out)?;
    }
    Ok(())
}

fn table(Suggestions { links, urls, rules }: &Suggestions, mut out: impl Write) -> io::Result<()> {
    let mut rows = Rows::new(&mut out, [9, 14]);
    rows.number("links", grouped(*links), format!("{} different URLs", grouped(*urls as u64)))?;
    for Suggestion { why, changes, saves, examples, .. } in rules {
        let why = printable(why.as_bytes(), None);
        rows.number("saves", grouped(*saves), format!("of {} URLs: {why}", grouped(*changes)))?;
        for urls in examples.iter().take(EXAMPLES) {
            let urls: Vec<_> = urls.iter().map(|url| printable(url.as_bytes(), None)).collect();
            rows.number("", "", urls.join(" = "))?;
        }
    }
    if rules.is_empty() {
        return writeln!(out, "\nno rule would save many requests");
    }
    writeln!(out, "\n# Look at the examples, and paste the rules that fit into config.toml:")?;
    for Suggestion { toml, .. } in rules {
        writeln!(out, "\n{}", toml.trim_end())?;
    }
    Ok(())
}
