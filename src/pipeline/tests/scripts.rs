//! The simulated Redis gives the replies of a real server, which are in the transcript of the
//! scripts.

use super::state::State;
use super::wire::{Word, Words};

const TRANSCRIPT: &str = include_str!("../../../tests/it/transcripts/scripts.txt");

#[test]
fn the_simulated_redis_gives_the_replies_of_a_server() {
    let (simulated, _) = TRANSCRIPT.split_once("\n\n# Only a server").expect("both parts");
    let (mut state, mut pushed) = (State::default(), Vec::new());
    let commands = simulated.split("\n$ ").skip(1);
    for command in commands.map(|it| it.split_once("\n\n# ").map_or(it, |(command, _)| command)) {
        let (command, expected) = command.split_once('\n').unwrap_or((command, ""));
        let words: Vec<_> = command.split(' ').map(|word| word.trim_matches('\'')).collect();
        let found = match &words[..] {
            ["call", name, call @ ..] => {
                let reply = call_script(&mut state, name, call, &std::mem::take(&mut pushed));
                let mut lines = lines(&reply);
                if command.ends_with("| sed 3d") {
                    lines.remove(2);
                }
                lines
            }
            ["redis-cli", "rpush", list, items @ .., ">done"] => {
                let items = items.iter().map(|item| Word::from(item.to_string()));
                match *list {
                    "source" => state.source.extend(items),
                    "forget" => state.forget.extend(items),
                    "sink" => pushed = items.collect(),
                    other => panic!("{other}"),
                }
                Vec::new()
            }
            ["redis-cli", "lrange", list, ..] => {
                let items: Vec<_> = match *list {
                    "source" => state.source.iter().collect(),
                    "forgetting" => state.forgetting.iter().collect(),
                    "sink" => state.sink.iter().collect(),
                    "rejected" => state.rejected.iter().collect(),
                    other => panic!("{other}"),
                };
                items.into_iter().map(|item| String::from_utf8_lossy(item).into_owned()).collect()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(found.join("\n").trim_end(), expected.trim_end(), "{command}");
    }
}

/// Calls a script by its keys, a comma, and its arguments. A command before it has pushed items.
fn call_script(state: &mut State, name: &str, call: &[&str], pushed: &[Word]) -> Vec<u8> {
    let keys = call.iter().position(|&word| word == ",").expect("a comma");
    let call = call.iter().filter(|&&word| word != ",").take_while(|&&word| word != "|");
    let count = keys.to_string();
    let words = ["EVALSHA", name, &count].into_iter().chain(call.copied());
    let words: Words = words.map(|word| Word::from(word.to_owned())).collect();
    if name == "commit" { state.commit(pushed, &words) } else { state.run(name, &words) }
}

/// Returns the strings and numbers of a reply.
fn lines(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(reply);
    let mut parts = text.split("\r\n");
    let mut lines = Vec::new();
    while let Some(part) = parts.next() {
        match part.split_at_checked(1) {
            Some(("$", _)) => lines.extend(parts.next().map(str::to_owned)),
            Some((":", number)) => lines.push(number.to_owned()),
            _ => {}
        }
    }
    lines
}
