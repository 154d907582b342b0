//! A comparison as a picture.

use crate::report::{Comparison, LaneReport, Report};
use crate::svg::Svg;
use crate::table::{duration, shortened};

const WIDTH: u32 = 860;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 830.0;
/// How many lanes are drawn: those with the most tasks.
const LANES_MAX: usize = 12;
const BEFORE: &str = "#8a94a6";
const AFTER: &str = "#2563eb";

/// Draws how many waited over time, and how long they waited in each lane.
pub fn plot(comparison: &Comparison) -> String {
    let lanes: Vec<&str> = comparison.before.lanes.iter().map(|lane| lane.lane.as_str()).collect();
    let lanes = &lanes[..lanes.len().min(LANES_MAX)];
    let height = 336 + 40 * lanes.len();
    let mut svg = Svg::new(WIDTH, height as u32);
    let title = format!("{} arrivals", comparison.arrivals);
    svg.text(24.0, 30.0, "start", "16", &title);
    legend(&mut svg, &comparison.before, &comparison.after);
    depth(&mut svg, &comparison.before, &comparison.after);
    waits(&mut svg, &comparison.before, &comparison.after, lanes);
    svg.finish()
}

fn legend(svg: &mut Svg, before: &Report, after: &Report) {
    for (place, (report, colour)) in [(before, BEFORE), (after, AFTER)].into_iter().enumerate() {
        let (x, refused) = (LEFT + 320.0 * place as f64, report.refusals.values().sum::<u64>());
        svg.put(format_args!(
            "<rect x=\"{x:.1}\" y=\"20\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/>\n"
        ));
        let label = match refused {
            0 => shortened(&report.name),
            refused => format!("{} ({refused} refused)", shortened(&report.name)),
        };
        svg.text(x + 18.0, 30.0, "start", "13", &label);
    }
}

/// How many waited, over the longer of the two spans.
fn depth(svg: &mut Svg, before: &Report, after: &Report) {
    let (top, bottom) = (70.0, 230.0);
    let most = before.waiting.iter().chain(&after.waiting).max().copied().unwrap_or_default().max(1);
    let span = before.span_ms.max(after.span_ms).max(1);
    svg.text(24.0, 60.0, "start", "13", "waiting");
    for part in 0..=4_u32 {
        let y = bottom - (bottom - top) * f64::from(part) / 4.0;
        svg.rule(LEFT, y, RIGHT, y);
        svg.text(
            LEFT - 8.0,
            y + 4.0,
            "end",
            "11",
            &format!("{:.0}", f64::from(most) * f64::from(part) / 4.0),
        );
        let x = LEFT + (RIGHT - LEFT) * f64::from(part) / 4.0;
        svg.text(x, bottom + 18.0, "middle", "11", &duration(span * u64::from(part) / 4));
    }
    for (report, colour) in [(before, BEFORE), (after, AFTER)] {
        let width = (RIGHT - LEFT) * report.span_ms as f64 / span as f64 / report.waiting.len() as f64;
        let mut path = format!("M{LEFT:.1} {bottom:.1}");
        for (place, waiting) in report.waiting.iter().enumerate() {
            let (x, y) = (
                LEFT + width * place as f64,
                bottom - (bottom - top) * f64::from(*waiting) / f64::from(most),
            );
            path.push_str(&format!("V{y:.1}H{:.1}", x + width));
        }
        svg.put(format_args!(
            "<path d=\"{path}V{bottom:.1}\" fill=\"{colour}\" fill-opacity=\"0.12\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\n"
        ));
    }
}

/// For each lane and side a bar from the median to the 99th percentile, with a mark at the 90th, on a scale of powers.
fn waits(svg: &mut Svg, before: &Report, after: &Report, lanes: &[&str]) {
    let (top, bottom) = (300.0, 300.0 + 40.0 * lanes.len() as f64);
    let longest =
        |report: &Report| report.lanes.iter().map(|lane| lane.wait_p99_ms).max().unwrap_or_default();
    let most = longest(before).max(longest(after)).max(10);
    let scale = |millis: u64| (millis as f64 + 1.0).log10() / (most as f64 + 1.0).log10();
    let place = |millis: u64| LEFT + (RIGHT - LEFT) * scale(millis);
    svg.text(24.0, top - 16.0, "start", "13", "wait: p50, p90 and p99 by lane");
    let mut tick = 0;
    while tick <= most {
        svg.rule(place(tick), top, place(tick), bottom);
        svg.text(place(tick), bottom + 18.0, "middle", "11", &duration(tick));
        tick = (tick * 10).max(10);
    }
    for (row, name) in lanes.iter().enumerate() {
        let y = top + 40.0 * row as f64;
        svg.text(LEFT - 8.0, y + 24.0, "end", "12", &shortened(name));
        for (report, colour, y) in [(before, BEFORE, y + 9.0), (after, AFTER, y + 22.0)] {
            if let Some(lane) = report.lane(name).filter(|lane| lane.ran > 0) {
                bar(svg, lane, colour, y, place);
            }
        }
    }
}

fn bar(svg: &mut Svg, lane: &LaneReport, colour: &str, y: f64, place: impl Fn(u64) -> f64) {
    let [p50, p90, p99] = [lane.wait_p50_ms, lane.wait_p90_ms, lane.wait_p99_ms].map(place);
    svg.put(format_args!(
        "<rect x=\"{p50:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"4\" rx=\"2\" fill=\"{colour}\" fill-opacity=\"0.45\"/>\n",
        y + 2.0,
        (p99 - p50).max(1.0)
    ));
    for x in [p50, p90, p99] {
        svg.put(format_args!("<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>\n", y + 4.0));
    }
}
