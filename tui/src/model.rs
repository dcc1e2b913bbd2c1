//! Everything the screen depends on.

use crate::columns::Column;
use crate::filter::Filter;
use crate::state::State;
use crate::theme::Theme;
use gwctl_entities::fleet::{Fleet, FleetMember};

/// Steps of `+` and `-`, milliseconds.
pub(crate) const INTERVALS: [u64; 8] = [250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];
/// Longest wait before the next try while the control plane does not answer, milliseconds.
const LONGEST_RETRY: u64 = 10_000;

/// How the dashboard starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the control plane, for the title.
    pub address: String,
    /// Time between two questions, milliseconds.
    pub interval: u64,
    /// Colours may be used; without them signs, words, bold and reverse remain.
    pub colour: bool,
    /// Only ASCII characters.
    pub ascii: bool,
    /// A line above the keys.
    pub note: Option<String>,
    /// No cell is cut, for frames that nobody scrolls.
    pub whole: bool,
}

/// What lies over the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Fleet,
    Detail,
    Help,
}

/// Everything the screen depends on.
#[derive(Debug, Clone)]
pub struct Model {
    pub(crate) address: String,
    pub(crate) theme: Theme,
    pub(crate) note: Option<String>,
    pub(crate) whole: bool,
    pub(crate) now: u64,
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) fleet: Option<Fleet>,
    /// When `fleet` came.
    pub(crate) fleet_at: u64,
    /// Why the last question had no answer.
    pub(crate) fault: Option<String>,
    /// Questions without answer in a row.
    pub(crate) failures: u32,
    pub(crate) asking: bool,
    pub(crate) next_ask: u64,
    pub(crate) interval: u64,
    pub(crate) paused: bool,
    pub(crate) screen: Screen,
    pub(crate) filter: Filter,
    pub(crate) typing: bool,
    pub(crate) problems_only: bool,
    pub(crate) sort: Column,
    pub(crate) reverse: bool,
    /// Columns scrolled out to the left.
    pub(crate) shifted: usize,
    /// Indexes into the fleet's items, in the order of the screen.
    pub(crate) rows: Vec<usize>,
    /// Index into `rows`; 0 when there are none.
    pub(crate) selected: usize,
    /// Id of the selected node: the selection follows it when rows move.
    pub(crate) selected_id: Option<String>,
    /// First row on the screen.
    pub(crate) top: usize,
    /// First line of help or detail on the screen.
    pub(crate) scroll: usize,
}

impl Model {
    /// A dashboard that knows nothing yet and asks at its first tick.
    pub fn new(options: Options) -> Model {
        Model {
            address: options.address,
            theme: Theme { colour: options.colour, ascii: options.ascii },
            note: options.note,
            whole: options.whole,
            now: 0,
            width: 80,
            height: 24,
            fleet: None,
            fleet_at: 0,
            fault: None,
            failures: 0,
            asking: false,
            next_ask: 0,
            interval: options.interval.max(INTERVALS[0]),
            paused: false,
            screen: Screen::Fleet,
            filter: Filter::default(),
            typing: false,
            problems_only: false,
            sort: Column::State,
            reverse: false,
            shifted: 0,
            rows: Vec::new(),
            selected: 0,
            selected_id: None,
            top: 0,
            scroll: 0,
        }
    }

    /// The last fleet that came.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_ref()
    }

    /// Why the last question had no answer.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The selected data plane.
    pub(crate) fn member(&self) -> Option<&FleetMember> {
        self.fleet.as_ref()?.items.get(*self.rows.get(self.selected)?)
    }

    /// Age of what is shown, milliseconds.
    pub(crate) fn data_age(&self) -> u64 {
        self.now.saturating_sub(self.fleet_at)
    }

    /// Whether what is shown may no longer hold.
    pub(crate) fn stale(&self) -> bool {
        self.fault.is_some() || self.paused
    }

    /// How many data planes are in this state.
    pub(crate) fn count(&self, state: State) -> usize {
        let Some(fleet) = &self.fleet else { return 0 };
        fleet.items.iter().filter(|member| State::of(member, fleet) == state).count()
    }

    /// Wait until the next question after the last one.
    pub(crate) fn wait(&self) -> u64 {
        match self.failures {
            0 => self.interval,
            failures => (500 << failures.min(8)).clamp(self.interval.min(LONGEST_RETRY), LONGEST_RETRY),
        }
    }

    /// Rows of data planes that fit below title and head, above the status line.
    pub(crate) fn page(&self) -> usize {
        let lines = [self.counts_line(), self.note_line().is_some()];
        let around = 3 + self.banner().len() + lines.into_iter().filter(|there| *there).count();
        usize::from(self.height).saturating_sub(around).max(1)
    }

    /// The note, where there is room for it.
    pub(crate) fn note_line(&self) -> Option<&str> {
        self.note.as_deref().filter(|_| self.height >= 10)
    }

    /// Whether the counts have a line of their own; in low terminals they share the title's.
    pub(crate) fn counts_line(&self) -> bool {
        self.height >= 8
    }

    /// The lines that say that the screen is not what is; the reason stands at their end, so a high terminal shows
    /// all of it.
    pub(crate) fn banner(&self) -> Vec<String> {
        let age = crate::format::age(self.data_age());
        let text = match (&self.fault, &self.fleet) {
            (Some(fault), Some(_)) => format!("NO ANSWER, last data {age} ago: {fault}"),
            (Some(fault), None) => format!("NO ANSWER: {fault}"),
            (None, Some(_)) if self.paused => format!("PAUSED, data is {age} old; space resumes"),
            (None, _) => return Vec::new(),
        };
        let most = if self.height < 12 { 1 } else { 4 };
        crate::format::folded(&text, usize::from(self.width), most)
    }

    /// Filters and sorts anew, keeping the selection on its data plane.
    pub(crate) fn arrange(&mut self) {
        let Some(fleet) = &self.fleet else { return };
        let shown = |member: &FleetMember| {
            (!self.problems_only || State::of(member, fleet) != State::Online) && self.filter.matches(member, fleet)
        };
        let mut rows: Vec<usize> = (0..fleet.items.len()).filter(|&row| shown(&fleet.items[row])).collect();
        rows.sort_by(|&left, &right| {
            let (left, right) = (&fleet.items[left], &fleet.items[right]);
            let order = self.sort.compare(left, right, fleet);
            let order = if self.reverse { order.reverse() } else { order };
            order.then_with(|| left.name.cmp(&right.name)).then_with(|| left.id.cmp(&right.id))
        });
        let found = self.selected_id.as_ref().and_then(|id| rows.iter().position(|&row| fleet.items[row].id == *id));
        self.rows = rows;
        self.select(found.unwrap_or(self.selected));
    }

    /// Selects a row, the nearest there is, and scrolls it into sight.
    pub(crate) fn select(&mut self, row: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
        self.selected_id = self.member().map(|member| member.id.clone());
        let page = self.page();
        self.top = self.top.clamp((self.selected + 1).saturating_sub(page), self.selected);
        self.top = self.top.min(self.rows.len().saturating_sub(page));
    }
}
