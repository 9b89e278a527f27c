//! Screen of a terminal for text that is drawn again and again.

use std::io::{self, IsTerminal, Write};

use rustix::termios::tcgetwinsize;

use crate::admin::printable::printable;

/// Switches to a second screen, so that the lines of the shell stay, and hides the cursor.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the cursor, and switches back to the lines of the shell.
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves to the first line.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears the rest of the screen.
const CLEAR_REST: &str = "\x1b[J";

/// Rows and columns of a terminal that does not tell its size.
const USUAL: (usize, usize) = (24, 80);

/// Second screen of the terminal. Dropping it restores the lines of the shell.
pub(super) struct Screen(());

impl Screen {
    /// Opens the screen. Returns `None` if standard output is not a terminal.
    pub(super) fn open() -> io::Result<Option<Self>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        put(OPEN)?;
        Ok(Some(Self(())))
    }

    /// Returns the number of rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).map(|size| (size.ws_row.into(), size.ws_col.into()));
        size.ok().filter(|size| *size != (0, 0)).unwrap_or(USUAL)
    }

    /// Draws a text in place of the last one. Lines that do not fit are cut. If the text does not
    /// fit, the last row has the number of the lines that are left out.
    pub(super) fn draw(&mut self, text: &str) -> io::Result<()> {
        let (height, width) = self.size();
        let count = text.lines().count();
        let shown = if count > height { height.saturating_sub(1) } else { count };
        let rest = format!("… {} more lines in a higher terminal", count - shown);
        let rest = (count > shown).then_some(&*rest);
        let lines = text.lines().take(shown).chain(rest).map(|line| {
            let line = printable(line.as_bytes(), Some(width));
            format!("{line}{CLEAR_LINE}")
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        put(&format!("{HOME}{lines}{CLEAR_REST}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = put(CLOSE);
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
