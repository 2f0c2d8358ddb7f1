//! The terminal while a run is shown on it: the alternate screen of standard error, without echo, and the keys that are pressed.
//!
//! Not what is drawn. Keys are read here, as crossterm's reader never returns from a terminal that is gone. Invariant: a screen that was entered is left, by a call, by dropping it, or, where any thread panics, before the message of
//! the panic is printed.

use crate::terminal::size_of;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stderr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// There is one terminal.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// What a terminal sends for Ctrl-C while signals of its keys are off.
const CTRL_C: u8 = 3;
const ESCAPE: u8 = 0x1b;

/// What a user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Nothing,
    Key(u8),
    /// The terminal is gone.
    HungUp,
}

impl Input {
    pub(super) const CTRL_C: Self = Self::Key(CTRL_C);

    /// Of bytes that were read together: the first key, and those after it. A key that is no character, such as an arrow, sends a sequence,
    /// which is none of ours.
    fn of(bytes: &[u8]) -> (Self, &[u8]) {
        let keys = bytes.split(|byte| *byte == ESCAPE).next().unwrap_or_default();
        match keys {
            _ if bytes.is_empty() => (Self::HungUp, &[]),
            [] => (Self::Nothing, &[]),
            [first, others @ ..] => (Self::Key(*first), others),
        }
    }
}

/// The alternate screen.
#[derive(Debug)]
pub(super) struct AlternateScreen {
    // In one piece, so that no half of a frame is seen.
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    /// What of it is drawn on.
    area: Rect,
    keys: OwnedFd,
    /// Keys that were read with an earlier one, the next one last.
    pending: Vec<u8>,
}

impl AlternateScreen {
    pub(super) fn enter() -> io::Result<Self> {
        HOOK.call_once(|| {
            let print = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                print(panic);
            }));
        });
        // As crossterm chooses the one whose mode it changes.
        let keys = match io::stdin().is_terminal() {
            true => io::stdin().as_fd().try_clone_to_owned()?,
            false => File::open("/dev/tty")?.into(),
        };
        enable_raw_mode()?;
        IS_SHOWN.store(true, Ordering::SeqCst);
        let shown = area();
        let entered = execute!(io::stderr(), EnterAlternateScreen).and_then(|()| {
            let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
            let viewport = Viewport::Fixed(shown);
            Terminal::with_options(backend, TerminalOptions { viewport })
        });
        match entered {
            Ok(terminal) => Ok(Self { area: shown, terminal, keys, pending: Vec::new() }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Is it still there? A panic of another thread ends it.
    pub(super) fn is_shown(&self) -> bool {
        IS_SHOWN.load(Ordering::SeqCst)
    }

    /// Draws a frame of the terminal's size; what did not change is not written.
    pub(super) fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        let area = area();
        if area != self.area {
            self.terminal.resize(area)?;
            self.area = area;
        }
        self.terminal.draw(|frame| draw(frame.area(), frame.buffer_mut())).map(|_| ())
    }

    /// What the user does within this time.
    pub(super) fn input(&mut self, within: Duration) -> Input {
        if let Some(key) = self.pending.pop() {
            return Input::Key(key);
        }
        let within = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
        let mut descriptors = [PollFd::new(&self.keys, PollFlags::IN)];
        match poll(&mut descriptors, Some(&within)) {
            Ok(0) | Err(Errno::INTR) => return Input::Nothing,
            Ok(_) => {}
            Err(_) => return Input::HungUp,
        }
        let mut bytes = [0; 64];
        match rustix::io::read(&self.keys, &mut bytes) {
            Ok(len) => {
                let (input, others) = Input::of(&bytes[..len]);
                self.pending.extend(others.iter().rev());
                input
            }
            Err(Errno::INTR | Errno::AGAIN) => Input::Nothing,
            Err(_) => Input::HungUp,
        }
    }

    /// Gives the terminal back.
    pub(super) fn leave(&self) {
        leave();
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        leave();
    }
}

/// What is drawn on of the terminal: its upper left, where it is larger than any screen. ratatui by itself would keep cells for all of it.
fn area() -> Rect {
    let (columns, rows) = size_of(io::stderr());
    Rect::new(0, 0, columns, rows)
}

/// Only the first call restores it. A terminal that is gone needs nothing.
fn leave() {
    if IS_SHOWN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Set where a test is to panic on the terminal that `script` of util-linux made for it.
    const PANICS: &str = "BRUNT_TEST_PANICS_ON_TERMINAL";

    /// The message of a panic stands on the terminal as it was: its modes are as they were, and the alternate screen is left.
    #[test]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        if std::env::var_os(PANICS).is_some() {
            let _screen = AlternateScreen::enter().unwrap();
            std::thread::spawn(|| panic!("on another thread")).join().unwrap_err();
            return;
        }
        let test = "tui::alternate_screen::tests::a_panic_gives_the_terminal_back_before_its_message";
        let program = std::env::current_exe().unwrap();
        let command = format!("stty -g; {} --exact {test} --nocapture; stty -g", program.display());
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &command, "/dev/null"]).env(PANICS, "1").stdin(Stdio::piped());
        let mut child = script.stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        let text = String::from_utf8_lossy(&output.stdout);
        let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word:?}: {text:?}"));
        let places = ["\x1b[?1049h", "\x1b[?1049l", "on another thread"].map(place);
        assert!(places.is_sorted(), "{text:?}");
        assert_eq!(text.matches("\x1b[?1049l").count(), 1, "{text:?}");
        // All modes of the terminal, in the words of stty.
        let modes = [text.lines().next(), text.lines().last()];
        assert!(modes[0] == modes[1] && modes[0].is_some_and(|line| line.contains(':')), "{text:?}");
    }

    #[test]
    fn keys_are_told_from_sequences() {
        let table: [(&[u8], Input, &[u8]); 7] = [
            (b"q", Input::Key(b'q'), b""),
            (b"\x03", Input::CTRL_C, b""),
            (b"hfq", Input::Key(b'h'), b"fq"),
            (b"h\x1b[A", Input::Key(b'h'), b""),
            // An arrow, and a function key whose sequence holds a key of ours.
            (b"\x1b[A", Input::Nothing, b""),
            (b"\x1bOq", Input::Nothing, b""),
            (b"", Input::HungUp, b""),
        ];
        for (bytes, input, others) in table {
            assert_eq!(Input::of(bytes), (input, others), "{bytes:?}");
        }
    }
}
