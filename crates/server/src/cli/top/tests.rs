//! Views of artificial snapshots, and how they are drawn.

use std::time::{Duration, SystemTime};

use bellwether::client::{Depths, KindSample, Snapshot, WorkerView, WrappingCount};
use bellwether::testing::views;
use bellwether::{Kind, NodeId, WorkerId};
use bellwether_core::wire::WireError;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use uuid::Uuid;

use super::draw::Screen;
use super::json::Line;
use super::live::{Pressed, pressed};
use super::view::{Sort, State, View};

/// 2026-11-22T03:00:00Z.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_316_400)
}

const SECOND: Duration = Duration::from_secs(1);

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

/// A worker that registered 725 seconds before now.
fn worker(n: u128, node: &str, kinds: &[&str], assigned: usize, ended: usize) -> WorkerView {
    let id = WorkerId::new(Uuid::from_u128(n));
    let mut worker = views::worker(id, NodeId::new(node).unwrap(), now() - 725 * SECOND);
    let info = worker.info.as_mut().unwrap();
    info.host = format!("host-of-{node}");
    info.kinds = kinds.iter().copied().map(kind).collect();
    info.slots = 8;
    (worker.assigned, worker.ended) = (assigned, WrappingCount::of(ended));
    worker
}

fn sample(seen: &[(&str, usize)], sampled: usize, all: usize) -> KindSample {
    let mut sample = KindSample::default();
    sample.seen = seen.iter().map(|(name, n)| (kind(name), *n)).collect();
    (sample.sampled, sample.all) = (sampled, all);
    sample
}

/// Three workers; the third serves only the kind `mail`.
fn snapshot() -> Snapshot {
    let mut snapshot = views::snapshot(now());
    snapshot.workers = vec![
        worker(1, "first", &["report", "sum"], 8, 4_000),
        worker(2, "second", &["report", "sum"], 5, 3_000),
        worker(3, "third", &["mail"], 2, 70),
    ];
    let served = |name: &str, serving: &[usize], paused: Option<&str>| {
        let workers = || serving.iter().map(|n| &snapshot.workers[*n]);
        let mut view = views::kind(kind(name));
        view.workers = workers().map(|worker| worker.id).collect();
        (view.slots, view.assigned) = (8 * serving.len(), workers().map(|worker| worker.assigned).sum());
        view.paused = paused.map(|by| views::pause(by, now()));
        view
    };
    snapshot.kinds = vec![
        served("mail", &[2], Some("ops: the provider is down")),
        served("report", &[0, 1], None),
        served("sum", &[0, 1], None),
    ];
    let node = NodeId::new("first").unwrap();
    snapshot.leader = Some(views::leader(node, 3, 0x100_0000_0000_0001, now() - 7_380 * SECOND));
    snapshot.depths = depths(12_500, 1_204);
    (snapshot.record_totals.created, snapshot.record_totals.removed) =
        (WrappingCount::of(20_000), WrappingCount::of(7_500));
    snapshot.queued = sample(&[("mail", 50), ("sum", 150)], 200, 1_204);
    snapshot.running = sample(&[("mail", 2), ("report", 9), ("sum", 4)], 15, 15);
    snapshot
}

fn depths(stored: usize, queued: usize) -> Depths {
    let mut depths = Depths::default();
    (depths.stored, depths.queued, depths.delayed) = (stored, queued, 3);
    depths
}

/// The snapshot two seconds later.
fn later() -> Snapshot {
    let mut now = snapshot();
    now.at += 2 * SECOND;
    now.workers[0].ended = WrappingCount::of(4_120);
    now.workers[1].ended = WrappingCount::of(3_075);
    now.workers[2].ended = WrappingCount::of(75);
    now.depths = depths(12_700, 1_210);
    (now.record_totals.created, now.record_totals.removed) =
        (WrappingCount::of(20_204), WrappingCount::of(7_504));
    now.queued = sample(&[("mail", 50), ("sum", 150)], 200, 1_210);
    now
}

fn view(now: &Snapshot) -> View {
    View::new(Some((&snapshot(), 2 * SECOND)), now, Sort::Busy)
}

fn drawn(view: &View, trouble: Option<&str>, scroll: usize, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let screen = Screen {
        to: "zk1:2181,zk2:2181/bellwether/prod",
        interval: 2 * SECOND,
        trouble: trouble.map(|why| (why, 12 * SECOND)),
        view,
        sort: Sort::Busy,
        scroll,
        keys: true,
    };
    terminal.draw(|frame| frame.render_widget(&screen, frame.area())).unwrap();
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(width));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn rates_are_the_changes_between_two_snapshots() {
    let rates = view(&later()).per_second.unwrap();
    assert_eq!(rates.jobs.submitted, Some(102.0));
    assert_eq!(rates.jobs.removed, Some(2.0));
    assert_eq!(rates.ended, 100.0);
    // 204 jobs were submitted, and six more are open.
    assert_eq!(rates.jobs.finished, Some(99.0));
    assert_eq!(View::new(None, &later(), Sort::Busy).per_second, None);
    assert_eq!(View::new(Some((&snapshot(), Duration::ZERO)), &later(), Sort::Busy).per_second, None);
}

#[test]
fn rates_count_the_jobs_of_segments() {
    let mut later = later();
    later.record_totals.jobs_per_record = 50.0;
    let rates = view(&later).per_second.unwrap();
    assert_eq!(
        (rates.jobs.submitted, rates.jobs.removed, rates.ended),
        (Some(5_100.0), Some(100.0), 5_000.0)
    );
}

#[test]
fn a_count_that_wraps_or_restarts_gives_no_wrong_rate() {
    let last = (1 << 31) - 2;
    assert_eq!(WrappingCount::of(5).since(WrappingCount::of(last)), Some(7));
    let mut before = snapshot();
    before.record_totals.created = WrappingCount::of(20_000);
    let mut now = later();
    now.record_totals.created = WrappingCount::of(3);
    let rates = View::new(Some((&before, SECOND)), &now, Sort::Busy).per_second.unwrap();
    assert_eq!((rates.jobs.submitted, rates.jobs.finished), (None, None));
}

#[test]
fn counts_that_are_incomplete_are_not_shown() {
    let mut now = later();
    now.further_minutes = 9;
    let view = view(&now);
    assert!(!view.jobs.delayed_exact);
    assert_eq!(view.jobs.over, None);
    assert_eq!(view.per_second.unwrap().jobs.finished, None);
}

#[test]
fn a_dead_workers_jobs_are_open_and_not_finished() {
    let mut now = snapshot();
    let gone = now.workers.remove(1);
    now.orphaned = gone.assigned;
    assert_eq!(view(&now).per_second.unwrap().jobs.finished, Some(0.0));
    assert_eq!((now.open(), now.assigned()), (snapshot().open(), 10));
}

#[test]
fn attempts_are_counted_by_kind_if_its_workers_serve_no_other_kind() {
    let view = view(&later());
    let ended = |name: &str| view.kinds.iter().find(|kind| kind.kind == name).unwrap().ended_per_second;
    assert_eq!((ended("mail"), ended("sum")), (Some(2.5), None));
}

#[test]
fn a_kind_without_workers_is_shown_while_its_jobs_wait() {
    let mut now = later();
    now.queued = sample(&[("typo", 2)], 2, 2);
    let view = view(&now);
    let typo = view.kinds.iter().find(|kind| kind.kind == "typo").unwrap();
    assert_eq!((typo.workers, typo.waiting.unwrap().count), (0, 2));
}

#[test]
fn workers_and_kinds_are_sorted_as_requested() {
    let order = |sort| {
        let view = View::new(Some((&snapshot(), 2 * SECOND)), &later(), sort);
        let nodes = view.workers.iter().map(|worker| worker.node.clone().unwrap()).collect::<Vec<_>>();
        let kinds = view.kinds.iter().map(|kind| kind.kind.clone()).collect::<Vec<_>>();
        (nodes.join(" "), kinds.join(" "))
    };
    let told = |nodes: &str, kinds: &str| (nodes.to_owned(), kinds.to_owned());
    assert_eq!(order(Sort::Busy), told("first second third", "sum mail report"));
    assert_eq!(order(Sort::Rate), told("first second third", "sum mail report"));
    assert_eq!(order(Sort::Age), told("third second first", "mail report sum"));
    assert_eq!(order(Sort::Name), told("first second third", "mail report sum"));
    let all = [Sort::Busy, Sort::Rate, Sort::Name, Sort::Age];
    assert_eq!(all.map(Sort::next), [Sort::Rate, Sort::Name, Sort::Age, Sort::Busy]);
}

#[test]
fn the_page_shows_leader_jobs_rates_and_slots() {
    let shown = drawn(&view(&later()), None, 0, 110, 24);
    for text in [
        "first leads, epoch 3, for 2h03m",
        "1,210 queued  3 delayed  15 running",
        "102.0 submitted  99.0 finished  100.0 attempts ended  2.0 records removed",
        "15 of 24 busy",
        "ops: the provider is down",
        "≈908",
        "q quit",
    ] {
        assert!(shown.contains(text), "{text:?} is not in\n{shown}");
    }
    assert!(shown.lines().any(|line| line.starts_with("third") && line.contains("2.5")), "{shown}");
}

#[test]
fn the_example_page_in_the_docs_is_current() {
    let shown = drawn(&view(&later()), None, 0, 100, 17);
    let page = include_str!("../../../../../docs/cli.md");
    assert!(page.contains(&shown), "put this into docs/cli.md:\n{shown}");
}

#[test]
fn a_missing_leader_and_a_lost_connection_are_shown() {
    let mut now = later();
    now.leader.as_mut().unwrap().standing = false;
    let shown = drawn(&view(&now), Some("the connection to zk1:2181 is lost"), 0, 110, 24);
    assert!(shown.contains("no leader; the last was first, epoch 3"), "{shown}");
    assert!(shown.contains("Data is 12s old: the connection to zk1:2181 is lost"), "{shown}");
    now.leader = None;
    assert!(drawn(&view(&now), None, 0, 110, 24).contains("no leader yet"));
}

#[test]
fn hosts_with_a_wrong_clock_are_shown() {
    let mut now = later();
    assert!(!drawn(&view(&now), None, 0, 110, 24).contains("clocks"));
    now.wrong_clocks = [("db-1", -7), ("db-1", -8), ("db-2", 31)]
        .map(|(host, ahead)| views::wrong_clock(host, ahead))
        .into();
    let shown = drawn(&view(&now), None, 0, 110, 24);
    assert!(shown.contains("clocks  db-1 is 8 s behind, db-2 is 31 s ahead of ZooKeeper's"), "{shown}");
}

#[test]
fn text_of_other_users_cannot_control_the_terminal() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\u{9b}2J\u{202e}txet";
    let mut now = later();
    for worker in &mut now.workers {
        worker.info.as_mut().unwrap().host = hostile.repeat(50);
    }
    now.wrong_clocks = vec![views::wrong_clock(hostile, 9)];
    now.kinds[0].paused = Some(views::pause(hostile, now.at));
    let view = view(&now);
    let shown = drawn(&view, Some(hostile), 0, 110, 24);
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!shown.contains(obeyed), "{shown:?}");
    assert_eq!(shown.lines().count(), 24, "no text adds a line");
    let line = serde_json::to_string(&Line::new(Some(hostile), &now, &view)).unwrap();
    assert!(!line.contains('\u{1b}'), "JSON escapes it: {line:?}");
    for (table, row) in [("a worker's host", "first "), ("who paused", "mail ")] {
        let row = shown.lines().find(|line| line.starts_with(row)).unwrap();
        assert!(row.contains("\\u{1b}[2J"), "{table} is shown escaped: {row}");
    }
}

#[test]
fn many_workers_are_cut_counted_and_scrolled_through() {
    let mut now = later();
    now.workers = (0..1_000).map(|n| worker(n, &format!("n{n}"), &["sum"], 1, 0)).collect();
    let view = View::new(None, &now, Sort::Busy);
    let first = drawn(&view, None, 0, 110, 24);
    assert!(
        first.contains("n0 ") && first.contains("… 1 to ") && first.contains("of 1000 workers"),
        "{first}"
    );
    assert!(first.contains("mail") && first.contains("sum"), "the kinds are shown: {first}");
    let last = drawn(&view, None, 5_000, 110, 24);
    assert!(last.contains("of 1000 workers") && !last.contains("n0 "), "{last}");
}

#[test]
fn a_page_of_any_size_is_drawn() {
    let view = view(&later());
    for (width, height) in [(1, 1), (5, 40), (200, 2), (40, 7), (300, 100)] {
        drawn(&view, Some("gone"), 2, width, height);
    }
}

#[test]
fn draining_shunned_and_unreadable_workers_are_shown_as_such() {
    let mut now = later();
    now.workers[0].info.as_mut().unwrap().draining = true;
    now.workers[1].shunned_until = Some(now.at);
    now.workers[2].info = Err(WireError::Magic);
    let view = view(&now);
    let states = view.workers.iter().map(|worker| worker.state).collect::<Vec<_>>();
    assert_eq!(states, [State::Draining, State::Shunned, State::Unreadable]);
    let shown = drawn(&view, None, 0, 110, 24);
    assert!(
        shown.contains("00000000-0000-0000-0000-000000000003"),
        "an unreadable worker is shown by its id: {shown}"
    );
}

#[test]
fn keys_match_the_footer() {
    let key = |code| pressed(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(key(KeyCode::Char('q')), Pressed::Quit);
    assert_eq!(key(KeyCode::Esc), Pressed::Quit);
    assert_eq!(key(KeyCode::Char('s')), Pressed::Sort);
    assert_eq!(key(KeyCode::Char(' ')), Pressed::Ask);
    assert_eq!(key(KeyCode::Down), Pressed::Down(1));
    assert_eq!(key(KeyCode::PageUp), Pressed::Up(10));
    assert_eq!(key(KeyCode::Char('x')), Pressed::Nothing);
    assert_eq!(pressed(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Pressed::Quit);
    assert_eq!(pressed(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL)), Pressed::Nothing);
}
