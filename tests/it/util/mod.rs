//! Tools that the tests share: real servers, the built program, real input, waiting.

pub(crate) mod binary;
pub(crate) mod descriptors;
pub(crate) mod links;
pub(crate) mod redis;
pub(crate) mod sources;
pub(crate) mod wait;

use std::path::Path;
use std::process::Command;

/// Makes a command that the kernel kills when the thread that started it ends. So no program
/// outlives its test, even if the test process is killed. The process id is that of the program
/// itself, because `setpriv` (of util-linux) executes the program in its own process.
///
/// A child that is passed to another thread dies with the thread that *started* it.
pub(crate) fn dies_with_us(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program.as_ref());
    command
}
