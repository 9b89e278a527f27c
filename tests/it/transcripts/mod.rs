//! Transcripts: commands as a user types them in bash, each with its whole output. A transcript is
//! a file `.txt` of this folder. `ACCEPT=1` writes the outputs of this version: then check the
//! difference.
//!
//! | line | meaning |
//! |---|---|
//! | `# text` | comment |
//! | `$ command` | command; lines that begin with `> ` continue it |
//! | any other | output, with standard error |
//! | `? 3` | exit status, if it is not 0 |
//!
//! The commands of a transcript run one after the other in the same shell and the same new folder.
//! If a transcript contains `redis-cli`, it has its own server. Outputs have names in place of what
//! differs between runs: `[DIR]`, `[REDIS]`, `[TIME]`, `[ID]`, `[HOST]`, `[SPEED]` and `[VERSION]`.
//!
//! | function | purpose |
//! |---|---|
//! | `urls FIRST LAST` | prints URLs with these numbers |
//! | `push ITEM...` | pushes items to the source |
//! | `drain` | runs the daemon until the source is empty; prints summary, warnings and refusal |
//! | `start`, `stop` | runs the daemon in the background, and ends it |
//! | `call NAME KEY... , ARGUMENT...` | runs a script of the protocol |
//! | `with_set call ...` | runs it with the functions of a set as a filter in Redis |
//! | `without COMMAND call ...` | runs it as a user who may not use this command |

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use regex::Regex;
use tempfile::TempDir;

use crate::tidy::report;
use crate::util::binary::Run;
use crate::util::redis::RedisServer;
use crate::util::sources::root;

const PRELUDE: &str = r#"
set -o pipefail
exec 2>&1
redis-cli() { command redis-cli -s "$SOCKET" "$@"; }
urls() { seq -f http://example.com/%.0f "$1" "$2"; }
push() { redis-cli rpush demo:discovered "$@" >pushed; }
drain() {
    urlseen run --drain "$@" 2>log | sed 's/ fingerprints, .*/ fingerprints, …/'
    local status=$?
    grep --invert-match ' INFO ' log
    return $status
}
start() {
    : >log
    setpriv --pdeathsig KILL -- urlseen run "$@" >summary 2>log &
    until grep --quiet 'this daemon has taken the lease' log; do
        kill -0 $! || return
        sleep 0.02
    done
}
stop() {
    kill $!
    wait $!
}
call() {
    local name=$1
    shift
    cat "$PROTOCOL/common.lua" - "$PROTOCOL/$name.lua" >script.lua <<<"$KIND"
    redis-cli --user "${LOGIN:-default}" --pass '' --no-auth-warning --eval script.lua "$@"
}
KIND='local filter_refusal, judge'
with_set() { KIND=$(cat "$PROTOCOL/../../../filter/src/peers/set.lua") "$@"; }
without() {
    redis-cli acl setuser limited on nopass ~* +@all "-$1" >done
    LOGIN=limited "${@:2}"
}
finish() {
    [ "$1" = 0 ] || echo "? $1"
    printf '\036'
}
"#;

#[test]
fn each_transcript_is_what_the_commands_print() {
    let files = fs::read_dir(root().join("tests/it/transcripts")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|it| it == "txt")).collect();
    assert!(!files.is_empty());
    let problems = thread::scope(|scope| {
        let runs: Vec<_> = files.iter().map(|path| scope.spawn(|| problem(path))).collect();
        runs.into_iter().filter_map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    report(problems.into_iter());
}

/// Runs a transcript. Returns the difference from the file, if there is one.
fn problem(path: &Path) -> Option<String> {
    let then = fs::read_to_string(path).unwrap();
    difference(path, &then, played(&then))
}

/// Returns the difference of a file from the text of this version. With `ACCEPT`, the file gets
/// the text.
fn difference(path: &Path, then: &str, now: String) -> Option<String> {
    if then == now {
        return None;
    }
    if std::env::var_os("ACCEPT").is_some() {
        fs::write(path, now).unwrap();
        return None;
    }
    let difference = Run::of("diff", ["--unified"]).arg(path).arg("-").stdin(now).output();
    Some(difference.text().to_owned())
}

/// Fails if a file of `tests/it` has another text.
#[track_caller]
pub(crate) fn assert_recorded(file: &str, now: String) {
    let path = root().join("tests/it").join(file);
    let then = fs::read_to_string(&path).unwrap_or_default();
    report(difference(&path, &then, now).into_iter());
}

#[test]
fn another_output_and_another_status_are_found() {
    let right = "# Comment\n$ echo a; \\\n>     false\na\n? 1\n";
    assert_eq!(played(right), right);
    assert_eq!(played(&right.replace("\na\n? 1", "\nb")), right);
}

/// Runs the commands of a transcript, and returns it with their outputs.
fn played(transcript: &str) -> String {
    let is_kept = |line: &&str| ["# ", "$ ", "> "].iter().any(|mark| line.starts_with(mark));
    let kept: Vec<_> = transcript.lines().filter(is_kept).collect();
    let mut script = PRELUDE.to_owned();
    let ends = |at: usize| kept.get(at + 1).is_none_or(|next| !next.starts_with("> "));
    for (at, line) in kept.iter().enumerate().filter(|(_, line)| !line.starts_with("# ")) {
        script = script + &line[2..] + if ends(at) { "\nfinish $?\n" } else { "\n" };
    }
    let mut outputs = outputs(&script, transcript.contains("redis-cli")).into_iter();
    let (mut now, mut in_comment) = (String::new(), true);
    for (at, line) in kept.iter().enumerate() {
        let is_comment = line.starts_with("# ");
        if is_comment && !in_comment {
            now += "\n";
        }
        in_comment = is_comment;
        now = now + line + "\n";
        if !is_comment && ends(at) {
            now += &outputs.next().expect("the shell ran to its end");
            now.truncate(now.trim_end_matches('\n').len());
            now += "\n";
        }
    }
    now
}

/// Runs a script, and returns the output of each command.
fn outputs(script: &str, has_server: bool) -> Vec<String> {
    let server = has_server.then(RedisServer::start);
    let folder = TempDir::new().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_urlseen")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut run = Run::of("bash", ["-c", script]).dir(folder.path()).env("PATH", path);
    run = run.env("PROTOCOL", root().join("crates/redis/src/protocol"));
    let mut names = vec![
        (folder.path().display().to_string(), "[DIR]"),
        (env!("CARGO_PKG_VERSION").to_owned(), "[VERSION]"),
    ];
    if let Some(server) = &server {
        run = run.env("URLSEEN_REDIS__URL", server.url());
        run = run.env("SOCKET", server.folder().join("socket"));
        names.push((server.folder().display().to_string(), "[REDIS]"));
    }
    // All transcripts run at the same time.
    let output = run.start().output(Duration::from_mins(5));
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    for (found, name) in names {
        text = text.replace(&found, name);
    }
    for (pattern, name) in [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "[TIME]"),
        (r"\bbatch \d+ \([0-9a-f]{16}\)", "batch [ID]"),
        (r"\b[0-9a-f]{16}\b", "[ID]"),
        (r"\bprocess \d+ on [^ ,)]+", "process [ID] on [HOST]"),
        (r"\d+\.\d+ s\b(, \d+ a second)?", "[SPEED]"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
    }
    text.split_terminator('\u{1e}').map(str::to_owned).collect()
}
