//! Detection of HTTP at `serve.listen`, the address for the Redis protocol. No client of Redis
//! speaks HTTP. But any web page can make a browser send HTTP to this machine, with commands in the
//! body.

/// Methods of HTTP/1.1, and `PRI`, the first word of HTTP/2.
const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "PRI"];

/// Returns true if the line is a request, a response or a `Host` header of HTTP. A browser can send
/// a method of any name. So a line that ends with an HTTP version counts as a request, whatever its
/// method.
pub(super) fn is_http(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    METHODS.iter().any(|method| first.eq_ignore_ascii_case(method.as_bytes()))
        || after(first, b"host:").is_some()
        || is_version(first)
        || words.next_back().is_some_and(is_version)
}

fn is_version(word: &[u8]) -> bool {
    after(word, b"http/").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
}

/// Returns the part of a word after a prefix; `None` if the word does not begin with the prefix.
/// Ignores the case of the prefix.
fn after<'a>(word: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = word.split_at_checked(prefix.len())?;
    begin.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_distinguished_from_commands() {
        for line in [
            "GET / HTTP/1.1",
            "get /",
            "Head /a%20b HTTP/1.0",
            "POST",
            "pUt /it's HTTP/1.1",
            "DELETE /\"a HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "TRACE / HTTP/1.1",
            "CONNECT victim.example:443 HTTP/1.1",
            "PATCH / HTTP/1.1",
            "PRI * HTTP/2.0",
            "SADD demo HTTP/1.1",
            "BF.ADD\tdemo\thttp/1.1 ",
            "HTTP/1.1 200 OK",
            "Host: 127.0.0.1:6390",
            "hOST:a",
        ] {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "  ",
            "PING",
            "SADD demo GET POST Host: HTTP/1.1 last",
            "SADD demo http://example.com/HTTP/1.1",
            "SADD demo HTTP/ HTTP",
            "SADD demo https/1.1",
            "GETS /",
            "Hostile: a",
            "hos",
        ] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }
}
