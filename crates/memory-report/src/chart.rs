//! Charts as SVG: marks and lines over two labelled axes. The caller gives them their meaning.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use wgvae::{Bytes, Error, Result};

pub use plotters::style::{RGBColor, WHITE};

/// Colours that people with any colour vision can tell apart (Okabe and Ito, 2008), without black
/// and yellow.
pub const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];

/// Colour of reference values, shown for comparison.
pub const GREY: RGBColor = RGBColor(128, 128, 128);

/// Font of labels. Charts draw text at about four fifths of this size.
const FONT: (&str, i32) = ("sans-serif", 18);

/// Shape of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Full circle.
    Circle,
    /// Full triangle.
    Triangle,
    /// Full square.
    Square,
    /// Diagonal cross.
    Cross,
    /// Circle without a filling.
    Ring,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 5] = [Self::Circle, Self::Triangle, Self::Square, Self::Cross, Self::Ring];

    /// Returns the shape as a character, for legends.
    pub fn symbol(self) -> char {
        match self {
            Self::Circle => '●',
            Self::Triangle => '▲',
            Self::Square => '■',
            Self::Cross => '✕',
            Self::Ring => '○',
        }
    }
}

/// Axis with its name, its ends, and its labels.
#[derive(Debug, Clone)]
pub struct Axis {
    name: String,
    ends: (f64, f64),
    ticks: Vec<(f64, String)>,
}

/// Points that share one kind of mark.
#[derive(Debug)]
pub struct Marks {
    /// Coordinates on the axes.
    pub points: Vec<(f64, f64)>,
    /// Colour of all marks.
    pub color: RGBColor,
    /// Shape of all marks.
    pub shape: Shape,
}

/// Line, with an optional name to the right of its end. See [`Axis::with_room_for_names`].
#[derive(Debug)]
pub struct Line {
    /// Coordinates on the axes, from one end to the other.
    pub points: Vec<(f64, f64)>,
    /// Colour of the line.
    pub color: RGBColor,
    /// True if the line is dashed.
    pub dashed: bool,
    /// Name to the right of the end.
    pub name: Option<String>,
}

/// Chart with its axes, lines and marks.
#[derive(Debug)]
pub struct Chart {
    /// Axis along the bottom.
    pub x: Axis,
    /// Axis at the left.
    pub y: Axis,
    /// Lines, drawn below the marks.
    pub lines: Vec<Line>,
    /// Marks.
    pub marks: Vec<Marks>,
}

impl Axis {
    /// Returns a linear axis from 0 to a little above the largest of `values`, labelled at round
    /// numbers.
    pub fn linear(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
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
    pub fn bytes(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        Self::log2(name, values, |power| Bytes(1 << power).to_string().replace(".0 ", " "))
    }

    /// Returns a logarithmic axis of picture sizes, labelled with the side of a square of that many
    /// pixels. Coordinates come from [`log2_side`].
    pub fn sides(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        Self::log2(name, values, |power| format!("{}²", 1_u64 << power))
    }

    /// Returns a logarithmic axis of counts, labelled at powers of two. Coordinates come from
    /// [`log2_count`].
    pub fn counts(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        Self::log2(name, values, |power| (1_u64 << power).to_string())
    }

    /// Returns the axis, longer by about a third, so that names of lines have room at the right.
    pub fn with_room_for_names(mut self) -> Self {
        self.ends.1 += 0.38 * (self.ends.1 - self.ends.0);
        self
    }

    fn log2(name: &str, values: impl IntoIterator<Item = f64>, label: impl Fn(u32) -> String) -> Self {
        let (low, high) = values.into_iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        let (low, high) = if low <= high { (low - 0.3, high + 0.3) } else { (0.0, 1.0) };
        let within = |low: f64, high: f64| (0..63).filter(move |power| (low..=high).contains(&f64::from(*power)));
        // An axis without two labels says nothing.
        let (low, high) = if within(low, high).count() < 2 { (low.floor(), high.ceil()) } else { (low, high) };
        let powers: Vec<u32> = within(low, high).collect();
        let every = powers.len().div_ceil(9).max(1);
        let ticks = powers.into_iter().step_by(every).map(|power| (f64::from(power), label(power))).collect();
        Self { name: name.to_owned(), ends: (low, high), ticks }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "a pixel of a chart")]
    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        let part = (value - self.ends.0) / (self.ends.1 - self.ends.0);
        (f64::from(begin) + f64::from(end - begin) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, at: &f64) -> String {
        let is_here = |tick: &&(f64, String)| (tick.0 - at).abs() < 1e-9;
        self.ticks.iter().find(is_here).map_or_else(String::new, |(_, label)| label.clone())
    }
}

/// Returns the coordinate of a count.
#[expect(clippy::cast_precision_loss, reason = "for a plot")]
pub fn log2_count(count: u64) -> f64 {
    (count.max(1) as f64).log2()
}

/// Returns the coordinate of a number of bytes.
pub fn log2_bytes(bytes: Bytes) -> f64 {
    log2_count(bytes.0)
}

/// Returns the coordinate of a picture of `pixels` pixels: the side of a square of that many.
pub fn log2_side(pixels: u64) -> f64 {
    log2_count(pixels) / 2.0
}

/// Draws `charts`, each of `width` x `height` pixels, one below the other. Give a `background` to
/// charts in files of their own.
pub fn svg(charts: &[Chart], (width, height): (u32, u32), background: Option<RGBColor>) -> Result<String> {
    let failed = |error: String| Error::Format { file: "chart".to_owned(), problem: error };
    let mut text = String::new();
    let rows = u32::try_from(charts.len()).unwrap_or(1).max(1);
    {
        let root = SVGBackend::with_string(&mut text, (width, height * rows)).into_drawing_area();
        if let Some(background) = background {
            root.fill(&background).map_err(|error| failed(error.to_string()))?;
        }
        for (chart, area) in charts.iter().zip(root.split_evenly((rows as usize, 1))) {
            chart.draw(&area).map_err(|error| failed(error.to_string()))?;
        }
        root.present().map_err(|error| failed(error.to_string()))?;
    }
    Ok(text)
}

type Context<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = std::result::Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

impl Chart {
    fn draw<'a>(&self, area: &Area<'a>) -> Drawn<'a> {
        let mut context = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(58)
            .y_label_area_size(100)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        context
            .configure_mesh()
            .x_desc(self.x.name.as_str())
            .y_desc(self.y.name.as_str())
            .label_style(FONT)
            .axis_desc_style(FONT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.15))
            .draw()?;
        for line in &self.lines {
            let points = line.points.iter().copied();
            if line.dashed {
                context.draw_series(DashedLineSeries::new(points, 6, 4, line.color.stroke_width(2)))?;
            } else {
                context.draw_series(LineSeries::new(points, line.color.stroke_width(2)))?;
            }
        }
        self.draw_names(&mut context)?;
        for Marks { points, color, shape } in &self.marks {
            let points = points.iter().copied();
            match shape {
                Shape::Circle => context.draw_series(points.map(|at| Circle::new(at, 5, color.filled())))?,
                Shape::Ring => context.draw_series(points.map(|at| Circle::new(at, 5, color.stroke_width(2))))?,
                Shape::Triangle => context.draw_series(points.map(|at| TriangleMarker::new(at, 7, color.filled())))?,
                Shape::Cross => context.draw_series(points.map(|at| Cross::new(at, 5, color.stroke_width(2))))?,
                Shape::Square => context.draw_series(
                    points.map(|at| EmptyElement::at(at) + Rectangle::new([(-4, -4), (5, 5)], color.filled())),
                )?,
            };
        }
        Ok(())
    }
    /// Writes the names of lines beside their ends, without overlap.
    fn draw_names<'a>(&self, context: &mut Context<'a>) -> Drawn<'a> {
        const LEAST: i32 = 20;
        let named = self.lines.iter().filter_map(|line| Some((line.name.as_ref()?, *line.points.last()?, line.color)));
        let mut named: Vec<(i32, &String, (f64, f64), RGBColor)> =
            named.map(|(name, end, color)| (context.backend_coord(&end).1, name, end, color)).collect();
        named.sort_by_key(|(row, ..)| *row);
        let mut free = i32::MIN;
        for (row, name, end, color) in named {
            let placed = row.max(free);
            free = placed + LEAST;
            let style = TextStyle::from(FONT).color(&color).pos(Pos::new(HPos::Left, VPos::Center));
            let text = EmptyElement::at(end) + Text::new(name.clone(), (8, placed - row), style);
            context.draw_series(std::iter::once(text))?;
        }
        Ok(())
    }
}
