//! Pictures: a small SVG by hand, because its every byte follows from the numbers, it needs no font and no crate, and a
//! browser shows it as it is.

/// A picture on white, drawn from back to front.
#[derive(Debug)]
pub struct Svg(String);

impl Svg {
    /// An empty one of this size.
    pub fn new(width: u32, height: u32) -> Svg {
        let mut svg = Svg(String::new());
        svg.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1f2937\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ));
        svg
    }

    /// Any element, as it is.
    pub fn put(&mut self, part: std::fmt::Arguments<'_>) {
        self.0.push_str(&part.to_string());
    }

    /// A thin line.
    pub fn rule(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.put(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#e5e7eb\"/>\n"
        ));
    }

    /// Words; `anchor` says which part of them is at `x`: `start`, `middle` or `end`.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, size: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{text}</text>\n"
        ));
    }

    /// The whole of it.
    pub fn finish(mut self) -> String {
        self.put(format_args!("</svg>\n"));
        self.0
    }
}
