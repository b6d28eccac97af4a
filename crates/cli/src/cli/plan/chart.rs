//! Charts as SVG: a line with marks over two labelled axes.

use wgvae::Bytes;

/// Size of a chart, pixels.
const SIZE: (f64, f64) = (640.0, 360.0);

/// Left, right, top and bottom of the part between the axes, pixels.
const INNER: [f64; 4] = [84.0, 620.0, 34.0, 306.0];

/// Axis with its name, its ends, and its labels.
#[derive(Debug)]
pub(super) struct Axis {
    name: String,
    ends: (f64, f64),
    ticks: Vec<(f64, String)>,
}

/// Points that a line joins.
#[derive(Debug)]
pub(super) struct Chart {
    /// Axis along the bottom.
    pub(super) x: Axis,
    /// Axis at the left.
    pub(super) y: Axis,
    /// Coordinates on the axes, from one end to the other.
    pub(super) points: Vec<(f64, f64)>,
    /// Colour of the line and the marks, as CSS names it.
    pub(super) color: &'static str,
}

impl Axis {
    /// Returns a linear axis from 0 to a little above the largest of `values`, labelled at round
    /// numbers.
    pub(super) fn linear(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let most = values.into_iter().fold(0.0, f64::max).max(1e-9) * 1.08;
        let magnitude = 10_f64.powf((most / 4.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = steps.into_iter().find(|step| most / step <= 8.0).unwrap_or(most);
        let ticks = (0..).map(|index| f64::from(index) * step).take_while(|tick| *tick <= most);
        let ticks = ticks.map(|tick| (tick, format!("{}", (tick * 1e6).round() / 1e6))).collect();
        Self { name: name.to_owned(), ends: (0.0, most), ticks }
    }

    /// Returns a logarithmic axis of bytes, labelled at powers of two. Coordinates come from
    /// [`log2_bytes`].
    pub(super) fn bytes(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = values.into_iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        let (low, high) = if low <= high { (low - 0.3, high + 0.3) } else { (0.0, 1.0) };
        let within = |low: f64, high: f64| (0..63).filter(move |power| (low..=high).contains(&f64::from(*power)));
        // An axis without two labels says nothing.
        let (low, high) = if within(low, high).count() < 2 { (low.floor(), high.ceil()) } else { (low, high) };
        let powers: Vec<u32> = within(low, high).collect();
        let every = powers.len().div_ceil(9).max(1);
        let label = |power: u32| Bytes(1 << power).to_string().replace(".0 ", " ");
        let ticks = powers.into_iter().step_by(every).map(|power| (f64::from(power), label(power))).collect();
        Self { name: name.to_owned(), ends: (low, high), ticks }
    }

    /// Returns the pixel of a coordinate on an axis that goes from pixel `from` to pixel `to`.
    fn place(&self, at: f64, (from, to): (f64, f64)) -> f64 {
        from + (at - self.ends.0) / (self.ends.1 - self.ends.0) * (to - from)
    }
}

/// Returns the coordinate of a number of bytes.
#[expect(clippy::cast_precision_loss, reason = "for a plot")]
pub(super) fn log2_bytes(bytes: Bytes) -> f64 {
    (bytes.0.max(1) as f64).log2()
}

/// Draws `charts` on white, one below the other. Their texts need no escaping.
#[expect(clippy::cast_precision_loss, reason = "a handful of charts")]
pub(super) fn svg(charts: &[Chart]) -> String {
    let (width, height) = (SIZE.0, SIZE.1 * charts.len() as f64);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (index, chart) in charts.iter().enumerate() {
        text.push_str(&format!("<g transform=\"translate(0 {})\">\n{}</g>\n", SIZE.1 * index as f64, chart.inner()));
    }
    text.push_str("</svg>\n");
    text
}

impl Chart {
    fn inner(&self) -> String {
        let [left, right, top, bottom] = INNER;
        let x = |at: f64| self.x.place(at, (left, right));
        let y = |at: f64| self.y.place(at, (bottom, top));
        let mut text = String::new();
        for (at, label) in &self.x.ticks {
            let at = x(*at);
            text.push_str(&grid((at, top), (at, bottom)));
            text.push_str(&words((at, bottom + 20.0), "middle", label));
        }
        for (at, label) in &self.y.ticks {
            let at = y(*at);
            text.push_str(&grid((left, at), (right, at)));
            text.push_str(&words((left - 8.0, at + 5.0), "end", label));
        }
        text.push_str(&words((right, bottom + 42.0), "end", &self.x.name));
        text.push_str(&words((4.0, 20.0), "start", &self.y.name));
        let placed: Vec<(f64, f64)> = self.points.iter().map(|point| (x(point.0), y(point.1))).collect();
        let joined: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (color, joined) = (self.color, joined.join(" "));
        text.push_str(&format!(
            "<polyline points=\"{joined}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n"
        ));
        for (x, y) in placed {
            text.push_str(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{color}\"/>\n"));
        }
        text
    }
}

fn grid(from: (f64, f64), to: (f64, f64)) -> String {
    let (x1, y1, x2, y2) = (from.0, from.1, to.0, to.1);
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#d9d9d9\"/>\n")
}

fn words((x, y): (f64, f64), anchor: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}
