//! Requests to the admin endpoint that ask if the filter has seen some items.

use urlseen_cli::admin::{AdminClient, Checked, ClientError, Limits};

use super::{Endpoint, by_first_letter};

fn checked(endpoint: &Endpoint, items: &[Vec<u8>]) -> Result<Vec<Checked>, ClientError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { AdminClient::new(endpoint.folder.path())?.check(items).await })
}

#[test]
fn each_item_gets_a_verdict_in_the_order_of_the_items() {
    let endpoint = Endpoint::new();
    let body = r#"{"items": ["s1", "u1", "d", {"base64": "/wA="}, "s2"]}"#;
    let answer = endpoint.post("/check", body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let expected = concat!(
        r#"{"items":[{"verdict":"seen","fingerprint":"s1"},"#,
        r#"{"verdict":"unseen","fingerprint":"u1"},{"verdict":"unfiltered"},"#,
        r#"{"verdict":"unreadable","reason":"[255, 0]"},{"verdict":"seen","fingerprint":"s2"}]}"#
    );
    assert_eq!(answer.body, expected);
}

#[test]
fn an_invalid_check_request_is_refused() {
    let endpoint = Endpoint::new();
    for body in [
        "",
        "http://a/",
        "[]",
        "{}",
        r#"{"items": "a"}"#,
        r#"{"items": [1]}"#,
        r#"{"items": [], "set": true}"#,
        r#"{"items": [{"base64": "*"}]}"#,
    ] {
        let answer = endpoint.post("/check", body);
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.body.contains("it must look like {\"items\": "), "{}", answer.body);
    }
    assert_eq!(endpoint.post("/check", r#"{"items": []}"#).body, r#"{"items":[]}"#);
}

#[test]
fn a_body_must_be_declared_as_json() {
    let endpoint = Endpoint::new();
    let body = r#"{"items": ["s1"]}"#;
    let ask = |header: &str| {
        let head = format!("POST /check HTTP/1.1\r\nHost: x\r\n{header}");
        endpoint.request(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    };
    for media in ["application/json", "Application/JSON;charset=utf-8", "application/json ; a=b"] {
        assert_eq!(ask(&format!("Content-Type: {media}\r\n")).status, 200, "{media}");
    }
    for header in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data; boundary=application/json\r\n",
        "Content-Type: application/jsonp\r\n",
    ] {
        let answer = ask(header);
        assert_eq!(answer.status, 415, "{header}: {answer:?}");
        assert!(answer.body.contains("Content-Type: application/json"), "{answer:?}");
    }
    // A page of another site cannot make a browser send a JSON body at once. The browser first
    // sends this request.
    let preflight = endpoint.request("OPTIONS /check HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(preflight.status, 405);
    assert!(!preflight.head.contains("access-control"), "{preflight:?}");
}

#[test]
fn the_reason_for_a_missing_verdict_is_reported() {
    let refuse = |_: &[Vec<u8>]| Err("the filter is not loaded yet".to_owned());
    let endpoint = Endpoint::with(Limits::default(), refuse);
    let answer = endpoint.post("/check", r#"{"items": ["a"]}"#);
    assert_eq!((answer.status, answer.body.as_str()), (503, "the filter is not loaded yet\n"));
    let error = checked(&endpoint, &[b"a".to_vec()]).unwrap_err();
    assert_eq!(error.to_string(), "the daemon answered: the filter is not loaded yet");
}

#[test]
fn a_check_that_panics_or_lacks_verdicts_is_answered_with_an_error() {
    let endpoint = Endpoint::with(Limits::default(), |items| {
        assert!(items[0] != b"panic", "the test asked for a panic");
        Ok(Vec::new())
    });
    for item in ["panic", "none"] {
        let answer = endpoint.post("/check", &format!(r#"{{"items": ["{item}"]}}"#));
        assert_eq!(answer.status, 500, "{answer:?}");
    }
}

/// Asks about so many items, with so many bytes, that they need several requests. Many items are
/// not valid UTF-8.
#[test]
fn the_client_divides_many_items_into_requests() {
    let endpoint = Endpoint::new();
    let bytes = |number: usize| [b"u\xff\x00\"\xc3\xbc"[..number % 7].to_vec(), vec![7; number]];
    let mut items = (0..1100).map(|number| bytes(number % 30).concat()).collect::<Vec<_>>();
    items.extend((0..11).map(|_| vec![1; 100_000]));
    items.push(vec![b's'; 1_000_000]);
    assert_eq!(checked(&endpoint, &items).unwrap(), by_first_letter(&items));
    let too_large = vec![b's'; Limits::BODY_BYTES];
    let error = checked(&endpoint, &[too_large]).unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    assert_eq!(checked(&endpoint, &[]).unwrap(), []);
}
