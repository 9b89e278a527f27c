//! Tests of the output of `urlseen plan`.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    plan: Plan,
}

fn printed(arguments: &[&str]) -> String {
    let command = Command::try_parse_from([&["plan"], arguments].concat()).unwrap();
    let mut out = Vec::new();
    print(&command.plan, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn json_has_the_chosen_row_with_the_error_rate_at_capacity() {
    let printed = printed(&["--capacity", "100M", "--error-rate", "1e-6", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["capacity"], 100_000_000);
    let chosen: Vec<_> = json["kinds"].as_array().unwrap().iter().collect();
    let chosen: Vec<_> = chosen.into_iter().filter(|row| row["chosen"] == true).collect();
    assert_eq!((chosen.len(), &chosen[1]["kind"]), (2, &"two-choice".into()));
    assert_eq!((&chosen[0]["variant"], &chosen[0]["k"]), (&"2 blocks".into(), &18.into()));
    let full = json["growth"].as_array().unwrap().iter().find(|row| row["percent"] == 100);
    let rate = full.unwrap()["error_rate"].as_f64().unwrap();
    assert!((0.99e-6..=1e-6).contains(&rate), "{rate}");
    let own = json["kinds"].as_array().unwrap().iter().filter(|row| row["kind"] == "native");
    for row in own {
        let full = &rates(row)[1];
        assert!((0.9e-6..=1e-6).contains(full), "{row}");
    }
}

/// Returns the output of `--json`.
fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(&[arguments, &["--json"]].concat())).unwrap()
}

/// Compares the lost URLs with sums of other tests, and with closed forms. A filter of the kind
/// two-choice loses half of its error rate at capacity, and an exact one loses nothing.
#[test]
fn each_kind_shows_the_urls_that_the_whole_crawl_loses() {
    let kinds = json(&["--capacity", "50M", "--error-rate", "1e-3"])["kinds"].take();
    let lost = |kind: &str| {
        let row = kinds.as_array().unwrap().iter().find(|row| row["kind"] == kind);
        row.unwrap()["lost_urls"].as_f64().unwrap()
    };
    for (kind, urls) in [("redisbloom", 2804.8), ("pyrebloom", 6087.2), ("redisson", 6087.2)] {
        assert!((lost(kind) / urls - 1.0).abs() < 1e-3, "{kind}: {}", lost(kind));
    }
    let full = rates(&other("two-choice", "50M", "1e-3"))[1];
    assert!((lost("two-choice") / (full * 50e6 / 2.0) - 1.0).abs() < 1e-12);
    assert_eq!((lost("exact"), lost("scrapy-redis")), (0.0, 0.0));
    let text = printed(&["--capacity", "50M", "--error-rate", "1e-3"]);
    let row = text.lines().find(|line| line.starts_with("pyrebloom ")).unwrap();
    assert_eq!(row.split_whitespace().last(), Some("6,087"), "{row}");
}

#[test]
fn a_plan_of_the_kind_two_choice_keeps_its_error_rate_up_to_the_capacity() {
    for capacity in ["10M", "5G"] {
        let full = rates(&other("two-choice", capacity, "1e-6"))[1];
        assert!((0.5e-6..=1e-6).contains(&full), "{capacity}: {full:e}");
    }
}

/// A kind takes the largest error rate that `--lost` permits. The error rates have two digits.
#[test]
fn lost_urls_set_the_error_rate_of_each_kind() {
    let most = 0.5;
    let plan = json(&["--capacity", "100M", "--lost", "0.5"]);
    assert_eq!(plan["lost_urls"], most);
    let mut planned = 0;
    for row in plan["kinds"].as_array().unwrap() {
        let (name, asked) = (row["kind"].as_str().unwrap(), row["asked"].as_f64());
        if row["chosen"] == true && name == "native" {
            assert_eq!(asked, plan["error_rate"].as_f64());
        }
        let Some(lost) = row["lost_urls"].as_f64() else { continue };
        assert!(lost <= most, "{row}");
        planned += u32::from(asked.is_some());
        // The rate of the kind two-choice is a power of two, and imooc ignores most of the rate.
        if asked.is_some() && !["two-choice", "imooc"].contains(&name) {
            assert!(lost > 0.8 * most, "{row}");
        }
    }
    assert!(planned >= 8, "four variants of native, and other kinds: {planned}");
    let native = plan["error_rate"].as_f64().unwrap();
    assert!((4e-8..1e-7).contains(&native), "{native:e}");
    let refused = plan["kinds"].as_array().unwrap().iter().find_map(|row| row["refused"].as_str());
    let why = refused.unwrap();
    assert!(why.starts_with("it has no error rate to set, and a crawl loses 140,529 "), "{why}");
    let text = printed(&["--capacity", "100M", "--lost", "0.5"]);
    let line = format!(
        "100,000,000 keys, at most 0.5 lost in the whole crawl; native at error rate {native:e}"
    );
    assert_eq!(text.lines().next(), Some(line.as_str()));
}

/// Returns the row of a kind in the output of `--json`.
fn other(filter: &str, capacity: &str, error_rate: &str) -> serde_json::Value {
    let text = printed(&["--capacity", capacity, "--error-rate", error_rate, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kinds = json["kinds"].as_array().unwrap();
    kinds.iter().find(|row| row["kind"] == filter).unwrap().clone()
}

fn rates(other: &serde_json::Value) -> Vec<f64> {
    let rows = other["error_rates"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| &row["percent"]).collect::<Vec<_>>(), [50, 100, 150, 200]);
    rows.iter().map(|row| row["error_rate"].as_f64().unwrap()).collect()
}

/// Computes the error rate of a Bloom filter as in textbooks: `(1 - e^(-k n / m))^k`.
fn textbook(k: i32, n: f64, m: f64) -> f64 {
    (1.0 - (-f64::from(k) * n / m).exp()).powi(k)
}

#[test]
fn error_rates_of_other_projects_follow_from_their_hashes() {
    let string = 2.0_f64.powi(32);
    // The only block is a whole string. The filter has more hashes than the optimal number.
    let found = rates(&other("imooc", "100M", "1e-6"));
    for (rate, n) in found.iter().zip([0.5e8, 1e8, 1.5e8, 2e8]) {
        assert!((rate / textbook(32, n, string) - 1.0).abs() < 1e-4, "{n}: {rate:e}");
    }
    // The filter has nine blocks. One has 3 of every 16 keys, five have 2, and three have 1.
    let full = rates(&other("imooc", "1e9", "1e-8"))[1];
    let blocks = [(3.0, 1.0), (2.0, 5.0), (1.0, 3.0)];
    let expected = blocks.map(|(of, blocks)| of * blocks * textbook(43, of * 1e9 / 16.0, string));
    assert!((full / (expected.iter().sum::<f64>() / 16.0) - 1.0).abs() < 1e-4, "{full:e}");

    // These filters are as in textbooks, except that they round the number of hashes.
    let port = rates(&other("luw2007-bloomfilter", "100M", "1e-6"))[1];
    assert!((0.99e-6..1.01e-6).contains(&port), "{port:e}");
    let pyrebloom = other("pyrebloom", "100M", "1e-6");
    let full = rates(&pyrebloom)[1];
    assert!((0.99e-6..1.01e-6).contains(&full), "{full:e}");
    // A native filter needs 31.0 bits for each key at an error rate of 1e-6. The memory of this
    // filter has only 28.8 bits for each key.
    let native = pyrebloom["native_error_rate"].as_f64().unwrap();
    assert!((2e-6..4e-6).contains(&native), "{native:e}");

    // The filter has five hashes instead of six.
    let full = rates(&other("scrapy-redis-bloomfilter", "100M", "1e-6"))[1];
    assert!((full / textbook(5, 1e8, string / 4.0) - 1.0).abs() < 0.01, "{full:e}");
    let full = rates(&other("block-cluster", "100M", "1e-6"))[1];
    assert!((full / textbook(15, 1e8, string) - 1.0).abs() < 1e-4, "{full:e}");
    assert_eq!(rates(&other("scrapy-redis", "100M", "1e-6")), [0.0; 4]);
}

/// Compares with bytes measured in Redis: 6.71 bytes a URL for 100 million URLs, and 19.7 for
/// 8,505,403.
#[test]
fn memory_of_other_projects_is_the_final_size_of_their_strings() {
    let mib = |count: u64| serde_json::json!([count << 20, count << 20]);
    let imooc = other("imooc", "100M", "1e-8");
    assert_eq!(imooc["bytes"], mib(640));
    let imooc = other("imooc", "2e9", "1e-7");
    assert_eq!(imooc["strings"], 10, "of 16");
    assert_eq!(imooc["bytes"], mib(6400));
    assert_eq!(imooc["bits"], 10_u64 << 32);
    let plain = other("scrapy-redis-bloomfilter", "8_505_403", "1e-8");
    assert_eq!(plain["bytes"], mib(160));
    assert_eq!((&plain["k"], &plain["asked"]), (&6.into(), &serde_json::Value::Null));
    let pyrebloom = other("pyrebloom", "200M", "1e-7");
    assert_eq!((&pyrebloom["strings"], &pyrebloom["k"]), (&2.into(), &24.into()));
    // The strings have 512 and 288 MiB. Redis allocates the next larger sizes.
    assert_eq!(pyrebloom["bytes"], mib(640 + 320));
    assert_eq!(other("scrapy-redis", "1M", "1e-8")["bytes"][0], 88_000_000);
}
