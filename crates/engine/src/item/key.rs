//! Key of a record: the part of a line, or of a record of a table, that is read as an item.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;
use std::str::FromStr;

use memchr::memmem;
use serde_json::json;
use serde_json::value::RawValue;

use super::json::FieldName;
use urlseen_filter::choice::unmarked;

/// Reason why a record has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each variant is its message
pub enum NoKey {
    #[error("the line is not JSON; make a list over several lines to lines with `jq -c '.[]'`")]
    NotJson,
    #[error("the line has no such field")]
    NoField,
    #[error("the field is not text")]
    NotText,
    #[error("the record has too few columns, or another delimiter")]
    NoColumn,
    #[error("a quote is not closed before the end of the file")]
    OpenQuote,
    #[error("the line has no URL")]
    NoUrl,
}

/// Path of a field in a JSON object: names, and numbers of elements of lists from 0 on, with dots
/// between them.
#[derive(Debug, Clone)]
pub struct FieldPath(Box<str>);

impl FromStr for FieldPath {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.into()))
    }
}

impl FieldPath {
    /// Returns the text of the field in an object.
    fn text<'a>(&self, object: &'a [u8]) -> Result<Cow<'a, str>, NoKey> {
        let mut value: &RawValue =
            serde_json::from_slice(unmarked(object)).map_err(|_| NoKey::NotJson)?;
        for step in self.0.split('.') {
            let text = value.get();
            value = if text.starts_with('[') {
                let list: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
                step.parse().ok().and_then(|index: usize| list.get(index).copied())
            } else {
                let fields: BTreeMap<FieldName<'_>, &RawValue> =
                    serde_json::from_str(text).unwrap_or_default();
                fields.get(&FieldName(Cow::Borrowed(step))).copied()
            }
            .ok_or(NoKey::NoField)?;
        }
        if value.get() == "null" {
            return Err(NoKey::NoField);
        }
        serde_json::from_str(value.get()).map(|FieldName(text)| text).map_err(|_| NoKey::NotText)
    }
}

/// Fields of a JSON object that describe a request.
#[derive(Debug, Clone)]
pub struct RequestFields {
    /// Field with the URL, or with an item of another form.
    pub url: FieldPath,
    /// Field with the method; `None` for GET. An object without the field is a GET as well.
    pub method: Option<FieldPath>,
    /// Field with the body; `None` for no body. An object without the field has no body as well.
    pub body: Option<FieldPath>,
}

impl RequestFields {
    /// Adds the item that an object describes to `key`.
    pub(crate) fn read(&self, object: &[u8], key: &mut Vec<u8>) -> Result<(), NoKey> {
        let url = self.url.text(object)?;
        if self.method.is_none() && self.body.is_none() {
            key.extend_from_slice(url.as_bytes());
            return Ok(());
        }
        let optional = |path: &Option<FieldPath>| match path.as_ref().map(|it| it.text(object)) {
            None | Some(Err(NoKey::NoField)) => Ok(None),
            Some(text) => text.map(Some),
        };
        let (method, body) = (optional(&self.method)?, optional(&self.body)?);
        let item = json!({"url": url, "method": method, "body": body});
        key.extend_from_slice(item.to_string().as_bytes());
        Ok(())
    }
}

/// Finds the first URL in a line. It ends at a blank, a double quote or an angle bracket, and at
/// the bracket or quote that closes the one before it.
pub(crate) fn find_url(line: &[u8]) -> Result<Range<usize>, NoKey> {
    for colon in memmem::find_iter(line, b"://") {
        let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let word = line[..colon].iter().rev().take_while(|byte| is_of_scheme(byte)).count();
        let word = colon - word;
        let Some(letter) = line[word..colon].iter().position(u8::is_ascii_alphabetic) else {
            continue;
        };
        let start = word + letter;
        let close = match line[..start].last() {
            Some(b'(') => b')',
            Some(b'[') => b']',
            Some(&quote @ (b'\'' | b'`')) => quote,
            _ => b'"',
        };
        let ends = |&byte: &u8| byte <= b' ' || b"\"<>".contains(&byte) || byte == close;
        let end = line[start..].iter().position(ends).map_or(line.len(), |length| start + length);
        if end > colon + 3 {
            return Ok(start..end);
        }
    }
    Err(NoKey::NoUrl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_field() {
        let object = br#" {"a":{"b.c":1,"list":[{"url":"http:\/\/x\/\u0026"}]},"n":null,"0":"z"}"#;
        let read = |path: &str| path.parse::<FieldPath>().unwrap().text(object);
        assert_eq!(read("a.list.0.url").unwrap(), "http://x/&");
        assert_eq!(read("0").unwrap(), "z");
        for missing in ["", "a.list.1.url", "a.list.url", "n", "n.x", "0.x", "b"] {
            assert_eq!(read(missing), Err(NoKey::NoField), "{missing}");
        }
        assert_eq!(read("a.list"), Err(NoKey::NotText));
        assert_eq!("a".parse::<FieldPath>().unwrap().text(b"[{"), Err(NoKey::NotJson));
    }

    #[test]
    fn fields_make_a_request() {
        let of = |method: Option<&str>, body: Option<&str>| {
            let path = |it: Option<&str>| it.map(|it| it.parse().unwrap());
            let url = "u".parse().unwrap();
            let fields = RequestFields { url, method: path(method), body: path(body) };
            let mut key = Vec::new();
            fields.read(br#"{"u":"http://a/","m":"POST","b":"x=\"1\"","n":3}"#, &mut key)?;
            Ok(String::from_utf8(key).unwrap())
        };
        assert_eq!(of(None, None).unwrap(), "http://a/");
        let post = of(Some("m"), Some("b")).unwrap();
        let read = super::super::json::read(post.as_bytes()).unwrap();
        let request = read.request().unwrap();
        assert_eq!((request.method, request.body), ("POST", &b"x=\"1\""[..]));
        assert!(of(Some("absent"), None).unwrap().contains("http://a/"));
        assert_eq!(of(None, Some("n")), Err(NoKey::NotText));
    }

    #[test]
    fn the_first_url_of_a_line_is_found() {
        for (line, url) in [
            ("1.2.3.4 - - \"GET http://a/b?x=1 HTTP/1.1\" 200", "http://a/b?x=1"),
            ("x=://, ://a 2026-ftp+x://a/\tb", "ftp+x://a/"),
            ("<loc>https://a/</loc>", "https://a/"),
            ("[text](https://a/b) (and)", "https://a/b"),
            ("'https://a/b' c", "https://a/b"),
            ("https://a/it's(1)", "https://a/it's(1)"),
            ("https://\u{e9}.example/\u{e9}", "https://\u{e9}.example/\u{e9}"),
        ] {
            let found = find_url(line.as_bytes()).map(|range| &line[range]);
            assert_eq!(found, Ok(url), "{line}");
        }
        for line in ["", "GET /path", "http:// a", "//a/b", "12://a", "mailto:a@b"] {
            assert_eq!(find_url(line.as_bytes()), Err(NoKey::NoUrl), "{line}");
        }
    }
}
