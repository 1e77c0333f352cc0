//! Makes regions of the spans of `tracing`.

use std::cell::RefCell;

use tracing_core::Subscriber;
use tracing_core::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::progress::{Progress, Refused};
use crate::thread::{self, Entered, Entry};

thread_local! {
    /// The spans that are entered on this thread, with the regions that they opened.
    static ENTERED: RefCell<Vec<(Id, Option<Entered>)>> = const { RefCell::new(Vec::new()) };
}

/// A layer for `tracing-subscriber` by which each span is a region of its name.
///
/// A span is one call, from the first time it is entered until it is closed, and is counted then; its time is that in which
/// it is entered. So the span of an async task is suspended while the task waits, and tasks of one thread may have spans of
/// one name. A span within another of its name counts as a call of that one. While a span is entered on one thread, what it
/// does on others isn't counted.
///
/// ```
/// use perfprop_regions::RegionLayer;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(RegionLayer);
/// tracing::subscriber::with_default(subscriber, || {
///     let _span = tracing::info_span!("likelihood").entered();
/// });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionLayer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RegionLayer {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if thread::records()
            && let Some(span) = context.span(id)
        {
            span.extensions_mut().insert(Progress::default());
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if thread::records() {
            let entered = context.span(id).and_then(|span| {
                let name = span.name();
                enter(span.extensions_mut().get_mut()?, name)
            });
            let _ = ENTERED.try_with(|spans| spans.borrow_mut().push((id.clone(), entered)));
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let entered = ENTERED.try_with(|spans| {
            let mut spans = spans.borrow_mut();
            let place = spans.iter().rposition(|(entered, _)| entered == id)?;
            spans.remove(place).1
        });
        if let (Ok(Some(entered)), Some(span)) = (entered, context.span(id)) {
            match span.extensions_mut().get_mut::<Progress>() {
                Some(progress) => progress.suspend(entered),
                None => thread::leave(entered),
            }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id) {
            span.extensions_mut().get_mut().into_iter().for_each(Progress::finish);
        }
    }
}

/// Opens the region of a span, or goes on with it.
fn enter(progress: &mut Progress, name: &str) -> Option<Entered> {
    match progress.enter(|call| thread::enter_named(name, call, Entry::Named)) {
        Ok(entered) => return Some(entered),
        Err(Refused::Within) => thread::count_again_named(name),
        Err(Refused::Other) => {}
    }
    None
}
