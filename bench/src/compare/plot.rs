//! The timed figures as bars.

use laneway_whatif::Svg;

use crate::compare::report::{Figures, Report, middle};

const WIDTH: u32 = 980;
const OURS: &str = "#2563eb";
const THEIRS: &str = "#8a94a6";
/// The panels are in two columns.
const PANEL: (f64, f64) = (480.0, 220.0);
const BAR: f64 = 22.0;
const NAMES: f64 = 140.0;
const ROOM: f64 = 250.0;

/// One panel: its title, its figure and the scale of its bars.
struct Panel {
    title: &'static str,
    figure: fn(&Figures) -> Option<f64>,
    /// Whether the bars grow by powers of ten.
    is_by_powers: bool,
}

const PANELS: [Panel; 6] = [
    Panel {
        title: "no-ops, thousands a second: more is better (powers of ten)",
        figure: |figures| Some(middle(&figures.no_ops)),
        is_by_powers: true,
    },
    Panel {
        title: "idle, submit to start, us: less is better (powers of ten)",
        figure: |figures| Some(middle(&figures.idle)),
        is_by_powers: true,
    },
    Panel {
        title: "256 naps of 20 ms at once, ms: less is better",
        figure: |figures| Some(middle(&figures.fan_out)),
        is_by_powers: false,
    },
    Panel {
        title: "1 000 sessions through 4 slots, times bare: less is better",
        figure: |figures| (figures.wrong_turns() == 0).then(|| middle(&figures.times_bare())),
        is_by_powers: false,
    },
    Panel {
        title: "a waiting task, bytes: less is better",
        figure: |figures| Some(middle(&figures.memory)),
        is_by_powers: false,
    },
    Panel {
        title: "where the light user's last of ten begins: less is better",
        figure: |figures| figures.light.last().map(|place| *place as f64),
        is_by_powers: false,
    },
];

pub fn plot(report: &Report) -> String {
    let height = PANEL.1 * PANELS.len().div_ceil(2) as f64 + 20.0;
    let mut svg = Svg::new(WIDTH, height as u32);
    for (place, panel) in PANELS.iter().enumerate() {
        let corner = (16.0 + PANEL.0 * (place % 2) as f64, 28.0 + PANEL.1 * (place / 2) as f64);
        draw(&mut svg, corner, panel, report);
    }
    svg.finish()
}

fn draw(svg: &mut Svg, (left, top): (f64, f64), panel: &Panel, report: &Report) {
    let figures: Vec<Option<f64>> = report.rows.iter().map(|(_, figures)| (panel.figure)(figures)).collect();
    let most = figures.iter().flatten().copied().fold(1.0, f64::max);
    let least = figures.iter().flatten().copied().fold(most, f64::min).max(0.01);
    // The scale begins at the power below the least figure, so that every bar has a length.
    let floor = least.log10().floor();
    let length = |figure: f64| {
        if panel.is_by_powers {
            ROOM * (figure.max(0.01).log10() - floor).max(0.05) / (most.log10() - floor).max(0.1)
        } else {
            ROOM * figure / most
        }
    };
    svg.text(left, top, "start", "13", panel.title);
    for (row, ((name, _), figure)) in report.rows.iter().zip(&figures).enumerate() {
        let y = top + 14.0 + BAR * row as f64;
        let x = left + NAMES;
        svg.text(x - 8.0, y + 13.0, "end", "11", name);
        let Some(figure) = *figure else {
            svg.text(x + 4.0, y + 13.0, "start", "11", "cannot");
            continue;
        };
        let (colour, width) =
            (if name.starts_with("Laneway") { OURS } else { THEIRS }, length(figure).max(1.0));
        svg.put(format_args!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"13\" rx=\"2\" fill=\"{colour}\"/>\n",
            y + 2.0
        ));
        let told = if figure < 10.0 { format!("{figure:.2}") } else { format!("{figure:.0}") };
        svg.text(x + width + 6.0, y + 13.0, "start", "11", &told);
    }
}
