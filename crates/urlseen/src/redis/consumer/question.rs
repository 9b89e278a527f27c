//! Question to Redis: a command, or the call of a script.

use redis::Cmd;

use urlseen_core::redis::script::Call;

/// Question that is safe to repeat.
pub(super) enum Question<'a> {
    Command(Cmd),
    Script(Call<'a>),
}

impl Question<'_> {
    /// Returns the command of the question. If `by_text` is true, the command of a script has the
    /// text of the script, not its hash.
    pub(super) fn command(&self, by_text: bool) -> Cmd {
        match self {
            Self::Command(command) => command.clone(),
            Self::Script(call) if by_text => call.by_text(),
            Self::Script(call) => call.by_hash(),
        }
    }
}

impl From<Cmd> for Question<'_> {
    fn from(command: Cmd) -> Self {
        Self::Command(command)
    }
}

impl<'a> From<Call<'a>> for Question<'a> {
    fn from(call: Call<'a>) -> Self {
        Self::Script(call)
    }
}
