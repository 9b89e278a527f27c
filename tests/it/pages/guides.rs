//! Runs the commands of the guides, and the examples in `docs/reference/commands.md`, exactly as on
//! the pages. Each page has a new folder and its own Redis server.
//!
//! | block | what the test does with it |
//! |---|---|
//! | `sh` | runs it by bash; a command that fails ends the test |
//! | `text`, right after `sh` | compares it with the output of these commands |
//! | `toml` | stops the daemon, writes `config.toml`; uses its `redis.url` if this is a cluster |
//! | any other, such as `sh by-hand` or `python` | nothing |
//!
//! `urlseen run` runs in the background.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use crate::tidy::report;
use crate::util::binary::Run;
use crate::util::redis::{RedisServer, free_port};
use crate::util::sources::{Source, pages, root};

/// Pages whose commands need a Scrapy project. `test_recipes.py` of the Python package
/// runs them.
const OF_SCRAPY: &[&str] = &["docs/guides/scrapy.md", "docs/guides/scrapy-redis.md"];

/// Page with an example of each command.
const COMMANDS: &str = "docs/reference/commands.md";

/// Shell code that makes the commands of a page use the servers of the test.
const PRELUDE: &str = r#"
set -euo pipefail
shopt -s inherit_errexit
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
redis-cli() {
    case $1 in
        -p | --cluster) command redis-cli "$@" ;;
        *) command redis-cli -p "$REDIS" "$@" ;;
    esac
}
redis-server() {
    exec setpriv --pdeathsig KILL -- redis-server "$@"
}
urlseen() {
    if [ "$*" != run ]; then
        command "$PROGRAM" "$@"
        return
    fi
    setpriv --pdeathsig KILL -- "$PROGRAM" run 2>>"$OUT/log" &
    daemon=$!
    until is_ready 2>"$OUT/readyz"; do
        kill -0 "$daemon" || { cat "$OUT/log" >&2; exit 9; }
        sleep 0.02
    done
}
is_ready() (
    exec 3<>"/dev/tcp/127.0.0.1/$ADMIN"
    printf 'GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n' >&3
    grep --quiet '^HTTP/1.1 200' <&3
)
stop() {
    if [ -n "${daemon:-}" ]; then
        kill "$daemon"
        wait "$daemon" || { cat "$OUT/log" >&2; exit 9; }
        daemon=
    fi
}
"#;

/// Block of code: the words after the opening fence, and the text.
struct Block<'a> {
    kind: &'a str,
    text: String,
}

/// Runs the pages that changed lately, or all of them with `GUIDES=all`.
#[test]
fn the_commands_of_the_guides_run_word_for_word() {
    let changed = changed();
    let run = |page: &&Source| {
        let path = &*page.path;
        let has_commands = path.starts_with("docs/guides/") || path == COMMANDS;
        has_commands && !OF_SCRAPY.contains(&path) && is_due(path, changed.as_deref())
    };
    report(pages().iter().filter(run).filter_map(problem));
}

/// Returns the files that differ from the sources of 20 commits ago; `None` if they are not known,
/// or if all pages are to run.
fn changed() -> Option<String> {
    if std::env::var("GUIDES").is_ok_and(|pages| pages == "all") {
        return None;
    }
    let mut git = Command::new("git");
    git.args(["diff", "--name-only", "HEAD~20"]).current_dir(root());
    let output = git.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Returns true if a page or, for the page of the commands, a command is among the changed files.
fn is_due(page: &str, changed: Option<&str>) -> bool {
    changed.is_none_or(|changed| {
        let is_touched =
            |file: &str| file == page || page == COMMANDS && file.starts_with("src/cli/");
        changed.lines().any(is_touched)
    })
}

#[test]
fn a_page_is_due_if_it_or_its_command_changed() {
    let changed = "docs/guides/pipe.md\nsrc/cli/plan.rs\n";
    assert!(is_due("docs/guides/pipe.md", Some(changed)) && is_due(COMMANDS, Some(changed)));
    assert!(!is_due("docs/guides/service.md", Some(changed)));
    assert!(is_due("docs/guides/service.md", None));
}

#[test]
fn failed_commands_and_different_output_are_found() {
    let page = |text: &str| Source { path: "page.md".to_owned(), text: text.to_owned() };
    let told = "```sh\nredis-cli rpush demo:discovered https://example.com/\n\
                urlseen run --drain >summary\nredis-cli llen demo:unseen\n```\n";
    let right = format!("{told}\n```text\n1\n1\n```\n```sh by-hand\nfalse\n```\n");
    assert_eq!(problem(&page(&right)), None);
    let wrong = problem(&page(&right.replace("1\n1", "1\n2"))).expect("a difference");
    assert!(wrong.contains("-2\n+1"), "{wrong}");
    let failed = problem(&page("```toml\n[crawl]\n```\n```sh\nfalse | true\n```\n"));
    assert!(failed.expect("a failure").contains("failed: "));
}

/// Runs the blocks of a page in order. Returns the message of the first failure.
fn problem(page: &Source) -> Option<String> {
    let redis = free_port();
    let _server = RedisServer::start_with(&["--bind", "127.0.0.1", "--port", &redis]);
    let (serve, admin) = (free_port(), free_port());
    let mut text = page.text.clone();
    for (shown, free) in [("6379", &redis), ("6390", &serve), ("9090", &admin)] {
        text = text.replace(shown, free);
    }
    if text.contains("{7000..7005}") {
        for (shown, free) in (7000..=7005).zip(cluster_ports()) {
            text = text.replace(&shown.to_string(), &free.to_string());
        }
    }
    let out = tempfile::tempdir().expect("a temporary folder");
    let run = Run::of("bash", ["-c", &script(&blocks(&text))])
        .env("PROGRAM", env!("CARGO_BIN_EXE_urlseen"))
        .env("URLSEEN_REDIS__URL", format!("redis://127.0.0.1:{redis}/0"))
        .env("URLSEEN_ADMIN__LISTEN", format!("127.0.0.1:{admin}"))
        .env("REDIS", &redis)
        .env("ADMIN", &admin)
        .env("OUT", out.path())
        .env("REPOSITORY", root());
    let output = run.start().output(Duration::from_mins(1));
    (output.code() != Some(0)).then(|| format!("{}: {}", page.path, output.stderr))
}

/// Returns the first of many successive ports that are free, also as ports of a cluster bus, which
/// are higher by 10,000. The system gives out only higher ports.
fn cluster_ports() -> impl Iterator<Item = u16> {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let all_free = |first: &u16| (*first..first + 6).all(|it| is_free(it) && is_free(it + 10_000));
    let first = (11_000..20_000).step_by(6).find(all_free).expect("free ports for a cluster");
    first..first + 6
}

/// Joins the blocks of a page to one script.
fn script(blocks: &[Block<'_>]) -> String {
    let mut script = PRELUDE.to_owned();
    let mut last = "";
    for Block { kind, text } in blocks {
        match *kind {
            "sh" => write!(script, "{{\n{text}\n}} >\"$OUT/printed\"\n"),
            "text" if last == "sh" => write!(
                script,
                "cat >\"$OUT/shown\" <<'END'\n{text}END\n\
                 diff --unified \"$OUT/shown\" \"$OUT/printed\" >&2\n"
            ),
            "toml" => {
                if text.contains("redis+cluster://") {
                    script += "unset URLSEEN_REDIS__URL\n";
                }
                write!(script, "stop\ncat >config.toml <<'END'\n{text}END\n")
            }
            _ => Ok(()),
        }
        .expect("a string takes all text");
        last = kind;
    }
    script + "stop\n"
}

/// Returns the fenced blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some(Block { kind, text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => writeln!(block.text, "{line}").expect("a string takes all text"),
            (None, None) => {}
        }
    }
    blocks
}
