//! Draws frames on a terminal, or on a scripted one with a buffer to look at.
//!
//! The terminal is given back as it was whatever happens: when [`Terminal`] is dropped, in a
//! panic, and before the program stops.

use std::io::{self, BufWriter, Stdout, Write};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use nix::sys::signal::{Signal, raise};
use ratatui::backend::{Backend, CrosstermBackend, TestBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event, KeyEvent, MouseEventKind};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue, style, terminal};
use ratatui::layout::{Position, Rect, Size};
use ratatui::{Frame, TerminalOptions, Viewport};

use super::picture;
use super::theme::Depth;
use super::typed::parse_keys;
use crate::files::panic_is_caught;

/// Pause between frames: at most ten a second, and more only while keys are pressed.
const FRAME_PAUSE: Duration = Duration::from_millis(100);
const PRESSED_PAUSE: Duration = Duration::from_millis(20);

/// How often the thread that reads keys looks whether it is still needed.
const KEY_PAUSE: Duration = Duration::from_millis(250);

/// Whether the terminal is in our hands.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// How many columns the terminal of this process has; `None` where it has none, or nobody says.
pub fn terminal_columns() -> Option<usize> {
    terminal::size().ok().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// What comes from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse, where it is ours, at this column and row.
    Mouse(MouseEventKind, u16, u16),
    /// The terminal has another size.
    Resized(u16, u16),
}

/// The most columns and rows that are drawn on, more than any screen has. A terminal may say that it has 65535 of each,
/// and the cells of these don't fit into the memory.
const MOST: u16 = 1000;

fn drawn(size: Size) -> Size {
    Size::new(size.width.min(MOST), size.height.min(MOST))
}

/// Who waits for the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitedBy {
    Nobody,
    /// Someone who pressed a key, or moved something.
    User,
}

/// A terminal to draw on.
#[derive(Debug)]
pub enum Terminal {
    /// The one that the program runs on.
    Real(Real),
    /// A terminal in memory, for tests.
    Scripted(ScriptedTerminal),
}

/// The terminal that the program runs on.
#[derive(Debug)]
pub struct Real {
    /// Never dropped: ratatui then shows the cursor, and panics where neither that nor its complaint can be written.
    screen: ManuallyDrop<ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    /// What of the terminal is drawn on.
    size: Size,
    inputs: Receiver<Input>,
    wanted: Arc<AtomicBool>,
}

/// A terminal in memory.
#[derive(Debug)]
pub struct ScriptedTerminal {
    screen: ratatui::Terminal<TestBackend>,
    inputs: Receiver<Input>,
    seen: Arc<Mutex<Buffer>>,
}

/// The user of a [scripted](Terminal::scripted) terminal, in another thread than the loop.
///
/// Each input waits until the loop takes it, so whatever was sent before is on the screen then.
#[derive(Debug)]
pub struct TerminalScript {
    inputs: Sender<Input>,
    seen: Arc<Mutex<Buffer>>,
    size: (u16, u16),
}

impl Terminal {
    /// Takes the terminal: alternate screen, no cursor, keys as they are pressed.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn open(depth: Depth) -> io::Result<Self> {
        restore_on_panic();
        // The depth was chosen by whoever looked at the environment; crossterm must not look again.
        style::force_color_output(depth != Depth::Mono);
        take()?;
        let open = || {
            let backend = CrosstermBackend::new(BufWriter::new(io::stdout()));
            let size = drawn(backend.size()?);
            let viewport = Viewport::Fixed(Rect::from((Position::ORIGIN, size)));
            let screen = ratatui::Terminal::with_options(backend, TerminalOptions { viewport })?;
            let screen = ManuallyDrop::new(screen);
            let wanted = Arc::new(AtomicBool::new(true));
            let (sender, inputs) = bounded(64);
            let still_wanted = Arc::clone(&wanted);
            thread::Builder::new().name("perfprop-keys".into()).spawn(move || read_keys(&sender, &still_wanted))?;
            Ok(Self::Real(Real { screen, size, inputs, wanted }))
        };
        open().inspect_err(|_| restore())
    }

    /// A terminal in memory, and its user.
    ///
    /// # Errors
    /// None, in fact; the type is that of a real one.
    pub fn scripted(width: u16, height: u16) -> io::Result<(Self, TerminalScript)> {
        let screen = ratatui::Terminal::new(TestBackend::new(width, height)).map_err(io::Error::other)?;
        let (sender, inputs) = bounded(0);
        let seen = Arc::new(Mutex::new(Buffer::default()));
        let script = TerminalScript { inputs: sender, seen: Arc::clone(&seen), size: (width, height) };
        Ok((Self::Scripted(ScriptedTerminal { screen, inputs, seen }), script))
    }

    pub(super) fn inputs(&self) -> &Receiver<Input> {
        match self {
            Self::Real(real) => &real.inputs,
            Self::Scripted(scripted) => &scripted.inputs,
        }
    }

    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        let size = match self {
            Self::Real(real) => drawn(real.screen.size()?),
            Self::Scripted(scripted) => scripted.screen.size().map_err(io::Error::other)?,
        };
        Ok((size.width, size.height))
    }

    pub(super) fn is_real(&self) -> bool {
        matches!(self, Self::Real(_))
    }

    /// The least time between two frames.
    pub(super) fn frame_pause(&self, awaited_by: AwaitedBy) -> Duration {
        match (self, awaited_by) {
            (Self::Real(_), AwaitedBy::Nobody) => FRAME_PAUSE,
            (Self::Real(_), AwaitedBy::User) => PRESSED_PAUSE,
            (Self::Scripted(_), _) => Duration::ZERO,
        }
    }

    /// Draws a frame; what didn't change isn't written. The terminal shows it in one piece.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match self {
            // A panic in another thread gave the terminal back: its words must stay readable.
            Self::Real(_) if !TAKEN.load(Ordering::SeqCst) => Err(io::Error::other("a thread of perfprop panicked")),
            Self::Real(real) => {
                queue!(real.screen.backend_mut(), BeginSynchronizedUpdate)?;
                if drawn(real.screen.size()?) != real.size {
                    real.clear()?;
                }
                real.screen.draw(view)?;
                execute!(real.screen.backend_mut(), EndSynchronizedUpdate)
            }
            Self::Scripted(scripted) => scripted.draw(view),
        }
    }

    /// Takes a new size; a real terminal has its own.
    pub(super) fn resized(&mut self, width: u16, height: u16) {
        if let Self::Scripted(scripted) = self {
            scripted.screen.backend_mut().resize(width, height);
        }
    }

    /// Forgets what is on the screen, so that the next frame draws every cell.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        match self {
            Self::Real(real) => real.clear(),
            Self::Scripted(scripted) => scripted.screen.clear().map_err(io::Error::other),
        }
    }

    /// Asks the terminal to report the mouse, or leaves the mouse to it.
    pub(super) fn mouse(&mut self, ours: bool) -> io::Result<()> {
        match self {
            Self::Real(real) if ours => execute!(real.screen.backend_mut(), EnableMouseCapture),
            Self::Real(real) => execute!(real.screen.backend_mut(), DisableMouseCapture),
            Self::Scripted(_) => Ok(()),
        }
    }

    /// Puts text into the clipboard of the terminal (OSC 52), which works over ssh too.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Real(real) => execute!(real.screen.backend_mut(), CopyToClipboard::to_clipboard_from(text)),
            Self::Scripted(_) => Ok(()),
        }
    }

    /// Gives the terminal back, stops this process until it is continued, and takes it again.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        if let Self::Real(_) = self {
            restore();
            // Not SIGTSTP: whoever gave us signals to read has a handler for that one.
            raise(Signal::SIGSTOP)?;
            take()?;
        }
        Ok(())
    }

    /// Takes the terminal again after this process was stopped from outside: whoever had it meanwhile may have left it
    /// in another mode.
    pub(super) fn retake(&mut self) -> io::Result<()> {
        if let Self::Real(_) = self {
            let _ = disable_raw_mode();
            take()?;
        }
        Ok(())
    }
}

impl Real {
    /// Forgets what is on the screen, which may have another size now. ratatui's `clear` asks the terminal where the
    /// cursor is, and waits for an answer that may never come.
    fn clear(&mut self) -> io::Result<()> {
        self.size = drawn(self.screen.size()?);
        self.screen.resize(Rect::from((Position::ORIGIN, self.size)))
    }
}

impl ScriptedTerminal {
    fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let frame = self.screen.draw(view).map_err(io::Error::other)?;
        if let Ok(mut seen) = self.seen.lock() {
            seen.clone_from(frame.buffer);
        }
        Ok(())
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        restore();
    }
}

impl TerminalScript {
    /// Presses keys: each character is one, `^C` is Control-C, and `<Enter>`, `<Esc>`, `<Tab>`,
    /// `<BackTab>`, `<Up>`, `<Down>`, `<Left>`, `<Right>`, `<PageUp>`, `<PageDown>`, `<Home>`,
    /// `<End>`, `<Backspace>` are those keys. False if the loop has ended.
    pub fn keys(&self, keys: &str) -> bool {
        parse_keys(keys).into_iter().all(|key| self.inputs.send(Input::Key(key)).is_ok())
    }

    /// Does something with the mouse.
    pub fn mouse(&self, kind: MouseEventKind, column: u16, row: u16) -> bool {
        self.inputs.send(Input::Mouse(kind, column, row)).is_ok()
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, width: u16, height: u16) -> bool {
        self.size = (width, height);
        self.inputs.send(Input::Resized(width, height)).is_ok()
    }

    /// What is on the screen once the loop has taken all that was sent before.
    pub fn screen(&self) -> String {
        picture::text(&self.buffer())
    }

    /// The screen with its styles.
    pub fn buffer(&self) -> Buffer {
        // The loop takes the second when it has drawn what the first changed.
        for _ in 0..2 {
            let _ = self.inputs.send(Input::Resized(self.size.0, self.size.1));
        }
        self.seen.lock().map(|seen| seen.clone()).unwrap_or_default()
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, cursor::Hide).inspect_err(|_| restore())
}

/// Gives the terminal back as it was. A second time does nothing.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // There is nothing left to be done about a terminal that can't be written to.
        let _ = execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            DisableMouseCapture,
            style::ResetColor,
            LeaveAlternateScreen,
            cursor::Show
        );
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// The words of a panic would be lost on the alternate screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !panic_is_caught() {
                restore();
            }
            before(info);
        }));
    });
}

/// Runs in a thread of its own. Its end, when the terminal is gone, closes the channel.
fn read_keys(inputs: &Sender<Input>, wanted: &AtomicBool) {
    while wanted.load(Ordering::Relaxed) {
        let input =
            match event::poll(KEY_PAUSE).and_then(|ready| if ready { event::read().map(Some) } else { Ok(None) }) {
                Ok(Some(Event::Key(key))) => Input::Key(key),
                Ok(Some(Event::Mouse(mouse))) => Input::Mouse(mouse.kind, mouse.column, mouse.row),
                Ok(Some(Event::Resize(width, height))) => {
                    let Size { width, height } = drawn(Size { width, height });
                    Input::Resized(width, height)
                }
                Ok(_) => continue,
                Err(_) => return,
            };
        if inputs.send(input).is_err() {
            return;
        }
    }
}
