//! Tests of the schema's descriptions and defaults. The integration tests have a validator.

use super::super::*;

#[test]
fn every_key_has_a_description_for_users_and_its_default() {
    let schema = schema();
    for key in KEYS {
        let (section, name) = key.split_once('.').unwrap();
        let property = &schema["properties"][section]["properties"][name];
        let text = property["description"].as_str().expect(key);
        assert!(text.contains(". Allowed: ") && !text.contains("`None`"), "{key}: {text}");
        assert!(!text.contains("[`") && !text.contains("  "), "{key}: {text}");
    }
    let filter = &schema["properties"]["filter"]["properties"];
    assert_eq!(filter["capacity"]["default"], 10_000_000);
    assert_eq!(filter["capacity"]["maximum"], 1_000_000_000_000_u64);
    assert_eq!(filter["key"].get("default"), None);
    let text = filter["key"]["description"].as_str().unwrap();
    assert!(text.ends_with(" Default: \"<crawl.name>:filter\"."), "{text}");
    assert_eq!(schema["properties"]["crawl"]["properties"]["name"]["default"], "demo");
}
