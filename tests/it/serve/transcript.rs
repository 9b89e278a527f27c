//! Comparison of replies, byte for byte, with those of a Redis with RedisBloom
//! (`tests/vectors/redisbloom-replies.jsonl`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Running, Served, Socket, packed};

#[derive(Deserialize)]
struct Line {
    resp: u8,
    command: Vec<String>,
    reply: String,
}

const REFUSED: &str = "-NOPERM urlseen answers only for the keys in serve.keys, and 'KEY' is not \
                       one of them: a filter must not take the URLs of one crawl for those of \
                       another\r\n";

/// Returns urlseen's reply to a command if it differs from the recorded reply.
/// `docs/reference/serve.md` has the reasons.
fn different(command: &str) -> Option<String> {
    let refused = |key: &str| REFUSED.replace("KEY", key);
    Some(match command {
        // In urlseen, exactly the configured keys exist.
        "BF.EXISTS nokey a"
        | "BF.MEXISTS nokey a b"
        | "BF.CARD nokey"
        | "BF.INFO nokey"
        | "SCARD nokey"
        | "SISMEMBER nokey a"
        | "DEL f nokey" => refused("nokey"),
        "BF.ADD s a" | "BF.EXISTS s a" | "BF.CARD s" | "BF.INFO s" | "BF.MADD s a" | "SADD s a" => {
            refused("s")
        }
        "BF.INSERT h NOCREATE ITEMS x" => refused("h"),
        "BF.RESERVE f 0.001 1000"
        | "BF.RESERVE n 0.01 3 NONSCALING"
        | "BF.RESERVE e 0.01 99999999999" => "-ERR item exists\r\n".to_owned(),
        // In urlseen, `SADD` and the other commands of sets use the same filter as `BF.ADD`.
        "SADD f a" => ":0\r\n".to_owned(),
        "SET s str" => unknown("SET", "'s' 'str' "),
        "EXISTS g" => unknown("EXISTS", "'g' "),
        "TYPE g" => unknown("TYPE", "'g' "),
        "COMMAND COUNT" => ":26\r\n".to_owned(),
        _ => return None,
    })
}

fn unknown(name: &str, arguments: &str) -> String {
    format!("-ERR unknown command '{name}', with args beginning with: {arguments}\r\n")
}

/// Returns the daemons that replace the recorded server, one for each of its filters.
fn servers() -> Vec<(&'static str, Served)> {
    let bloom = |keys: &str| Served::new(keys).set("filter.kind=redisbloom");
    vec![
        ("f", bloom("f").set("filter.capacity=1000").set("filter.error_rate=0.001")),
        ("g", bloom("g").set("filter.capacity=100").set("filter.error_rate=0.01")),
        (
            "n",
            bloom("n")
                .set("filter.capacity=3")
                .set("filter.error_rate=0.01")
                .set("filter.expansion=0"),
        ),
        ("e", bloom("e")),
        ("set", Served::new("set")),
        ("lower", Served::new("lower")),
    ]
}

#[test]
fn replies_are_the_same_as_those_of_redisbloom_with_listed_exceptions() {
    let text = include_str!("../../vectors/redisbloom-replies.jsonl");
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut differ: BTreeMap<String, usize> = BTreeMap::new();
    for version in [2, 3] {
        let servers: Vec<(&str, Served)> = servers();
        let running: Vec<Running> = servers.iter().map(|(_, server)| server.start()).collect();
        let mut sockets: Vec<Socket> = running.iter().map(Running::socket).collect();
        if version == 3 {
            for socket in &mut sockets {
                socket.send("HELLO 3\r\nECHO hello\r\n");
                let mut said = String::new();
                while !said.ends_with("$5\r\nhello\r\n") {
                    said += &socket.receive("x");
                }
                assert!(said.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"), "{said}");
            }
        }
        let mut count = 0;
        for Line { command, reply, .. } in lines.iter().filter(|line| line.resp == version) {
            let at = command.get(1).and_then(|key| servers.iter().position(|it| it.0 == key));
            let socket = &mut sockets[at.unwrap_or(0)];
            let name = command.join(" ");
            let own = different(&name);
            let first_reserve = differ.get(&name).is_some_and(|&times| times > 0);
            let expected = own.clone().unwrap_or_else(|| reply.clone());
            if own.is_some() && !(first_reserve && expected == *reply) {
                assert_ne!(expected, *reply, "{name} is listed as different, and is not");
                *differ.entry(name.clone()).or_default() += 1;
            }
            socket.send(packed(command));
            assert_eq!(socket.receive(&expected), expected, "RESP {version}: {name}");
            count += 1;
        }
        assert_eq!(count, 76, "the transcript is all there");
        for socket in &mut sockets {
            // The server has sent no further bytes.
            socket.send("ECHO end\r\n");
            assert_eq!(socket.receive("$3\r\nend\r\n"), "$3\r\nend\r\n");
        }
    }
    assert_eq!(differ.len(), 22, "{differ:?}");
}
