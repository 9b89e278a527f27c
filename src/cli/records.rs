//! Options that choose the part of each record that is read as an item.

use urlseen_engine::flow::records::{Column, Records};
use urlseen_engine::item::key::{FieldPath, RequestFields};

/// Part of each record of a file that is read as an item. Default: the whole line.
#[derive(Debug, Clone, clap::Args)]
#[group(multiple = true)]
pub(super) struct RecordOptions {
    /// The lines are JSON objects, with the URL in this field, such as url, request.endpoint or
    /// links.0.url
    #[arg(long, value_name = "PATH", group = "part")]
    field: Option<FieldPath>,
    /// The method of the request is in this field of the JSON object
    #[arg(long, value_name = "PATH", requires = "field")]
    method_field: Option<FieldPath>,
    /// The body of the request is in this field of the JSON object
    #[arg(long, value_name = "PATH", requires = "field")]
    body_field: Option<FieldPath>,
    /// The files are tables in CSV, with the URL in this column. With a name, the first record of
    /// each file is a header. A number counts from 1
    #[arg(long, value_name = "NAME|NUMBER", group = "part", value_parser = column)]
    column: Option<Column>,
    /// Character between two columns, such as ';' or tab. Default: a comma
    #[arg(long, value_name = "CHARACTER", requires = "column", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// The first URL in each line counts. It ends at a blank, a double quote or an angle bracket
    #[arg(long, group = "part")]
    find: bool,
    /// The files are sitemaps, or indexes of sitemaps, and each `<loc>` has a URL
    #[arg(long, group = "part")]
    sitemap: bool,
}

impl RecordOptions {
    /// Returns the records of the files.
    pub(super) fn records(&self) -> Records {
        match self.clone() {
            Self { field: Some(url), method_field: method, body_field: body, .. } => {
                Records::Fields(RequestFields { url, method, body })
            }
            Self { column: Some(column), delimiter, .. } => {
                Records::Table { column, delimiter: delimiter.unwrap_or(b',') }
            }
            Self { find: true, .. } => Records::Find,
            Self { sitemap: true, .. } => Records::Sitemap,
            _ => Records::Lines,
        }
    }
}

/// Parses a number or a name of a column.
fn column(word: &str) -> Result<Column, String> {
    match word.parse() {
        Ok(0) => Err("columns are counted from 1".to_owned()),
        Ok(number) => Ok(Column::Number(number)),
        Err(_) => Ok(Column::Name(word.to_owned())),
    }
}

/// Parses a character between columns.
fn delimiter(word: &str) -> Result<u8, String> {
    match word.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !b"\"\r\n".contains(&byte) => Ok(byte),
        _ => Err("give one ASCII character, or tab".to_owned()),
    }
}
