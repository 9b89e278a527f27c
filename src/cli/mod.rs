//! Command line: one file for each command.

mod bar;
mod check;
mod compare;
mod config;
mod explain;
mod export;
mod filter;
mod fingerprint;
mod held;
mod import;
mod migrate;
mod moving;
mod overview;
mod plan;
mod prelude;
mod records;
mod rejects;
mod replay;
mod route;
mod run;
mod service_manager;
mod settings;
mod start;
mod status;
mod storage;
mod table;
mod view;
mod watch;

use std::ffi::OsString;

use crate::config::Problems;
use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser};
use clap_complete::Shell;
use prelude::*;

/// Result of a command that ran, from the best to the gravest one, with its exit status. clap uses
/// that of `WrongUse` for arguments that it cannot read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    #[default]
    Done = 0,
    /// Done, but some of the input was bad or has not been seen. Standard error names each bad
    /// piece.
    BadInput = 1,
    /// Refused, at least for a part of the crawl. Standard error has the reason.
    WrongUse = 2,
    /// Not done completely. Standard error has the reason.
    Failed = 3,
}

impl Outcome {
    /// Returns the result of a command that failed with this error.
    fn of(error: &anyhow::Error) -> Self {
        let is_wrong = |error: &RedisOpenError| error.is_wrong_use();
        let is_wrong_use = error.is::<Problems>()
            || error.is::<start::UsageError>()
            || error.is::<SpecError>()
            || error.downcast_ref().is_some_and(is_wrong);
        if is_wrong_use { Self::WrongUse } else { Self::Failed }
    }
}

/// Part of the help of every command, before its examples.
const EXIT_STATUS: &str = "\
Exit status:
  0  done
  1  some of the input was bad
  2  wrong use, or a configuration that is wrong or cannot be read
  3  a server or a file failed";

/// Tell new requests from seen ones in a distributed crawl.
///
/// Examples:
/// ```text
/// urlseen plan --capacity 1e8  # memory for 100 million URLs
/// urlseen run                  # filters the crawl of ./config.toml
/// ```
#[derive(Debug, Parser)]
#[command(name = "urlseen", version)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

/// Declares commands in the order of the help, each with its arguments and its function.
macro_rules! commands {
    ($(#[$doc:meta])+ $Commands:ident {
        $( $(#[$attribute:meta])? $Name:ident($Args:ty) => $run:expr, )+
    }) => {
        $(#[$doc])+
        #[derive(Debug, clap::Subcommand)]
        pub(in crate::cli) enum $Commands {
            $( $(#[$attribute])? $Name($Args), )+
        }

        impl $Commands {
            pub(in crate::cli) fn run(&self) -> anyhow::Result<Outcome> {
                match self {
                    $( Self::$Name(args) => $run(args), )+
                }
            }
        }
    };
}

use commands;

commands! {
    /// All commands: the most common ones first.
    CliCommand {
        Run(run::RunArgs) => run::run,
        Route(route::RouteArgs) => route::run,
        Filter(filter::FilterArgs) => filter::run,
        Fingerprint(fingerprint::FingerprintArgs) => fingerprint::run,
        Plan(plan::Plan) => plan::run,
        #[command(subcommand)]
        Config(config::ConfigCommand) => config::ConfigCommand::run,
        Replay(replay::ReplayArgs) => replay::run,
        #[command(subcommand)]
        Storage(storage::StorageCommand) => storage::run,
        Import(import::ImportArgs) => import::run,
        Export(export::ExportArgs) => export::run,
        Status(status::StatusArgs) => status::run,
        Tap(watch::TapArgs) => watch::tap,
        Check(check::CheckArgs) => check::run,
        Explain(explain::ExplainArgs) => explain::run,
        Compare(compare::CompareArgs) => compare::run,
        #[command(subcommand)]
        Rejects(rejects::RejectsCommand) => rejects::run,
        Forget(check::ForgetArgs) => check::forget,
        #[command(subcommand)]
        Held(held::HeldCommand) => held::run,
        #[command(hide = true)]
        Completions(CompletionsArgs) => complete,
        #[command(hide = true)]
        ManPages(ManPagesArgs) => write_pages,
    }
}

/// Runs the command that the arguments name, and returns its exit status. The first argument is the
/// name of the program. Ends the process if the arguments are wrong, or if they ask for help.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let matches = grammar().try_get_matches_from(arguments);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let result = cli.unwrap_or_else(|error| refuse(&error)).command.run();
    result.unwrap_or_else(|error| report(&error)) as u8
}

/// Prints clap's error or the requested help, and ends the process.
fn refuse(error: &clap::Error) -> ! {
    // A message repeats arguments. They may be items, with control characters.
    let is_message = error.use_stderr();
    let _ = if is_message { write!(stderr(), "{}", error.render()) } else { error.print() };
    std::process::exit(error.exit_code())
}

/// Builds clap's command, with the exit statuses before the examples of every command.
fn grammar() -> clap::Command {
    with_statuses(Cli::command()).mut_subcommand("import", import::grammar).mut_subcommand(
        "replay",
        |replay| {
            replay.mut_group("RecordOptions", |part| part.requires("files").conflicts_with("key"))
        },
    )
}

/// Moves the examples from the doc comment of each command, where clap has joined their lines, to
/// the end of its help, or to the start if there are many.
fn with_statuses(command: clap::Command) -> clap::Command {
    let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let (about, examples) = about.split_once("\n\nExamples: ```text ").unwrap_or_default();
    let examples = examples.trim_end_matches(" ```").replace(" urlseen ", "\n  urlseen ");
    // Some commands have their own exit statuses.
    let own = command.get_after_help().map(ToString::to_string);
    let statuses = own.unwrap_or_else(|| EXIT_STATUS.to_owned());
    let long = Some(about).filter(|about| about.contains("\n\n"));
    let (before, after) = if examples.lines().count() > 2 {
        (Some(format!("Examples:\n  {examples}")), statuses)
    } else {
        (None, format!("{statuses}\n\nExamples:\n  {examples}"))
    };
    command
        .long_about(Resettable::from(long.map(|about| about.to_owned().into())))
        .before_long_help(Resettable::from(before.map(Into::into)))
        .after_help(after)
        .mut_subcommands(with_statuses)
}

/// Prints an error, and returns the result of its command.
fn report(error: &anyhow::Error) -> Outcome {
    // The program that reads the output has closed it, so this program needs no more lines.
    if is_broken_pipe(error) {
        return Outcome::Done;
    }
    let mut stderr = stderr();
    // If standard error itself fails, no other output is left, so that failure is ignored.
    if error.is::<Problems>() {
        // Each line begins with a file, a line and a column, so that editors and terminals can jump
        // there.
        let _ = writeln!(stderr, "{error}");
    } else {
        let _ = writeln!(stderr, "urlseen: {error:#}");
    }
    Outcome::of(error)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Print a script with which a shell completes the commands and options of urlseen.
///
/// The Debian package installs these scripts for bash, zsh and fish.
///
/// Examples:
/// ```text
/// urlseen completions bash  # for ~/.local/share/bash-completion/completions/urlseen
/// urlseen completions zsh   # for the file _urlseen in a folder of $fpath
/// ```
#[derive(Debug, clap::Args)]
struct CompletionsArgs {
    /// Shell that reads the script
    shell: Shell,
}

fn complete(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut grammar(), "urlseen", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}

/// Write the manual pages of all commands into a folder.
///
/// Examples:
/// ```text
/// urlseen man-pages ~/.local/share/man/man1
/// urlseen man-pages debian/urlseen/usr/share/man/man1
/// ```
#[derive(Debug, clap::Args)]
struct ManPagesArgs {
    /// Folder for the pages, which must exist
    folder: PathBuf,
}

fn write_pages(args: &ManPagesArgs) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    // A manual page has its examples at the end.
    let grammar = grammar().mut_subcommand("filter", |filter| {
        let parts = [filter.get_after_help(), filter.get_before_long_help()];
        let parts = parts.map(|part| part.map(ToString::to_string).unwrap_or_default());
        filter.after_help(parts.join("\n\n"))
    });
    clap_mangen::generate_to(grammar, folder).with_context(|| {
        format!("cannot write the manual pages to {}; create the folder first", folder.display())
    })?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }

    #[test]
    fn every_help_has_the_exit_statuses_and_valid_examples() {
        check_foot(&mut grammar());
    }

    fn check_foot(command: &mut clap::Command) {
        // Rendering adds a command `help`, which has no exit statuses and no examples.
        command.get_subcommands_mut().for_each(check_foot);
        let help = command.render_long_help().to_string();
        let (before, after) = help.split_once("Examples:\n").expect("examples");
        // The many examples of a command for all kinds of files are the first part of its help.
        let is_first = before.is_empty();
        let (examples, after) = after.split_once("\n\n").unwrap_or((after, ""));
        let foot = if is_first { after } else { before };
        let statuses = foot.rsplit_once("\n\nExit status:\n").expect("exit statuses").1;
        let is_last = !statuses.trim_end().contains("\n\n");
        assert!(statuses.starts_with("  0  ") && is_last, "{help}");
        let examples: Vec<&str> = examples.trim_end().lines().collect();
        assert_eq!(examples.len(), if is_first { 6 } else { 2 }, "{help}");
        for example in examples {
            let words = example.split("  #").next().unwrap().split_whitespace();
            grammar().try_get_matches_from(words).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn every_error_has_its_exit_status() {
        let env = vec![("URLSEEN_FILTER__CAPACITY".into(), "0".into())];
        let problems = Config::load(Sources { env, ..Sources::default() }).unwrap_err();
        assert_eq!(report(&problems.into()), Outcome::WrongUse);
        assert_eq!(report(&io::Error::other("the disk is gone").into()), Outcome::Failed);
        assert_eq!(report(&io::Error::from(io::ErrorKind::BrokenPipe).into()), Outcome::Done);
    }
}
