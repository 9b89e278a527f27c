//! Tools that the tests share: real servers, the built binary, real input, waiting.

pub(crate) mod binary;
pub(crate) mod descriptors;
pub(crate) mod links;
pub(crate) mod redis;
pub(crate) mod sources;
pub(crate) mod wait;

use std::path::Path;
use std::process::Command;

/// Makes a command that the kernel kills when the thread that started it ends. So nothing outlives
/// a test, however the test process ends. The process id is the program's own, as `setpriv` (of
/// util-linux) becomes the program.
///
/// A child handed to another thread dies with the thread that *started* it.
pub(crate) fn dies_with_us(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program.as_ref());
    command
}
