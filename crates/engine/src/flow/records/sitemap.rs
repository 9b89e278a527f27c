//! Sitemaps and indexes of sitemaps.

use memchr::memmem;

use super::{CutRecords, Format};
use crate::item::Items;

/// Sitemap, or an index of sitemaps.
#[derive(Default)]
pub(crate) struct Sitemap {
    /// Name of the elements with a URL: `loc`, with the prefix of the first element.
    name: Option<Vec<u8>>,
    has_entries: bool,
}

impl Sitemap {
    /// Reads the tag at the front of `xml`, or the whole element if it has a URL. Returns its
    /// length and the text; `None` if it is not complete.
    fn element<'a>(&mut self, xml: &'a [u8]) -> Option<(usize, Option<&'a [u8]>)> {
        if xml.starts_with(b"<!--") {
            return Some((memmem::find(xml, b"-->")?, None));
        }
        let end = memchr::memchr(b'>', xml)?;
        let name = xml[1..end].split(u8::is_ascii_whitespace).next().unwrap_or_default();
        if self.name.is_none() && !name.starts_with(b"?") && !name.starts_with(b"!") {
            let prefix = memchr::memchr(b':', name).map_or(0, |colon| colon + 1);
            self.name = Some([&name[..prefix], b"loc"].concat());
        }
        if self.name.as_deref() != Some(name) {
            return Some((end, None));
        }
        let length = memmem::find(xml, &[b"</", name].concat())?;
        Some((length, xml.get(end + 1..length)))
    }
}

impl Format for Sitemap {
    const UNIT: &'static str = "entry";

    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Result<(usize, CutRecords), String> {
        let (mut used, mut urls, mut places) = (0, Vec::new(), Vec::new());
        let mut is_whole = is_end;
        while let Some(open) = memchr::memchr(b'<', &bytes[used..]) {
            used += open;
            let Some((length, text)) = self.element(&bytes[used..]) else {
                is_whole = false;
                break;
            };
            if let Some(text) = text {
                let start = urls.len();
                unescape(text.trim_ascii(), &mut urls);
                places.push(start..urls.len());
                self.has_entries = true;
            }
            used += length;
        }
        if is_end && !self.has_entries {
            return Err("there is no <loc>; is this a sitemap?".to_owned());
        }
        // The entries before were returned.
        if is_end && !is_whole && used == 0 {
            return Err("the sitemap ends in the middle of an entry".to_owned());
        }
        let used = if is_whole { bytes.len() } else { used };
        Ok((used, CutRecords { items: Items::new(urls.into(), places), ..CutRecords::default() }))
    }
}

/// Adds the text of an XML element to `text`. Unknown entities stay as they are.
fn unescape(element: &[u8], text: &mut Vec<u8>) {
    let data = element.strip_prefix(b"<![CDATA[").and_then(|it| it.strip_suffix(b"]]>"));
    if let Some(data) = data {
        text.extend_from_slice(data.trim_ascii());
        return;
    }
    let mut rest = element;
    while let Some(mark) = memchr::memchr(b'&', rest) {
        text.extend_from_slice(&rest[..mark]);
        rest = &rest[mark..];
        let end = memchr::memchr(b';', rest);
        let character = end.and_then(|end| character(std::str::from_utf8(&rest[1..end]).ok()?));
        let (Some(end), Some(character)) = (end, character) else {
            text.push(b'&');
            rest = &rest[1..];
            continue;
        };
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[end + 1..];
    }
    text.extend_from_slice(rest);
}

/// Returns the character that an entity of XML stands for.
fn character(entity: &str) -> Option<char> {
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = entity.strip_prefix('#')?;
            let hex = number.strip_prefix('x').map(|digits| u32::from_str_radix(digits, 16));
            char::from_u32(hex.unwrap_or_else(|| number.parse()).ok()?)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::cut;
    use super::*;

    #[test]
    fn entries_of_sitemaps_are_whole_wherever_the_buffer_ends() {
        let text = "<?xml version='1.0'?><urlset><!-- <loc>http://no/</loc> --><url><loc>\n \
                    http://a/?x&amp;y&#61;&#x41;&no;&#xD800; </loc><image:loc>http://no/\
                    </image:loc></url><url><loc\nid='1'><![CDATA[http://b/?x&amp;y]]></loc>\
                    <lastmod>2026</lastmod></url></urlset>";
        let [first, second] = ["http://a/?x&y=A&no;&#xD800;", "http://b/?x&amp;y"];
        let expected = [first, second].map(|url| format!("{url} -> {url}"));
        for step in (1..100).chain([100_000]) {
            assert_eq!(cut(Sitemap::default(), text, step).unwrap(), expected, "{step}");
            let broken = text.split_once("]]>").unwrap().0;
            let refused = cut(Sitemap::default(), broken, step).unwrap_err();
            assert_eq!(refused, "the sitemap ends in the middle of an entry");
        }
        let prefixed = "<s:urlset><s:url><s:loc>http://a/</s:loc><i:loc>http://no/</i:loc></s:url>";
        assert_eq!(cut(Sitemap::default(), prefixed, 7).unwrap(), ["http://a/ -> http://a/"]);
        assert!(cut(Sitemap::default(), "http://a/\n", 5).unwrap_err().contains("no <loc>"));
    }
}
