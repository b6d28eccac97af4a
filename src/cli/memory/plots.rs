//! The page's plots.

use plotters::style::RGBColor;
use wgvae::report::Operation;
use wgvae::report::estimates::{Estimator, Work, invokeai_constant};
use wgvae::report::published::{Published, RTX_4090};
use wgvae::{Bytes, Result, Size};

use super::labels::distinct;
use super::rows::Row;
use crate::cli::chart::{Axis, COLORS, Chart, GREY, Line, Marks, Shape, log2_bytes, log2_side, svg};

/// Pixels of a plot.
const SIZE: (u32, u32) = (760, 460);

/// Name of the axis of pixels.
const SIDES: &str = "pixels of the picture, as a square";

/// Runs that are drawn together.
#[derive(Debug, Clone, Copy)]
struct Kind {
    operation: Operation,
    /// Bytes of an element.
    element_bytes: u64,
}

impl Kind {
    fn all() -> impl Iterator<Item = Self> {
        let both = |operation| [2, 4].map(|element_bytes| Self { operation, element_bytes });
        Operation::ALL.into_iter().flat_map(both)
    }

    /// What the runs are called.
    fn name(self) -> String {
        format!("{}s in {}", self.operation.name(), if self.element_bytes == 2 { "f16" } else { "f32" })
    }
}

/// A plot with what its marks mean.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) svg: String,
    pub(super) legend: Vec<Entry>,
}

/// One line of a legend.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) color: RGBColor,
    pub(super) symbol: char,
    pub(super) text: String,
}

/// Measured rows, by model in a colour and by adapter in a shape.
struct Series<'a> {
    models: Vec<&'a str>,
    adapters: Vec<&'a str>,
}

impl<'a> Series<'a> {
    fn new(rows: &[Row<'a>]) -> Self {
        Self {
            models: distinct(rows.iter().map(|row| row.measurement.model.as_str())),
            adapters: distinct(rows.iter().map(|row| row.adapter)),
        }
    }

    fn color(&self, model: &str) -> RGBColor {
        let index = self.models.iter().position(|known| *known == model).unwrap_or(0);
        COLORS[index % COLORS.len()]
    }

    fn shape(&self, adapter: &str) -> Shape {
        // Rings are for what others measured.
        let index = self.adapters.iter().position(|known| *known == adapter).unwrap_or(0);
        Shape::ALL[index % (Shape::ALL.len() - 1)]
    }

    fn legend(&self) -> Vec<Entry> {
        let models =
            self.models
                .iter()
                .map(|model| Entry { color: self.color(model), symbol: '━', text: (*model).to_owned() });
        let adapters = self.adapters.iter().map(|adapter| Entry {
            color: GREY,
            symbol: self.shape(adapter).symbol(),
            text: (*adapter).to_owned(),
        });
        models.chain(adapters).collect()
    }

    /// Points of each model and adapter, in order of pixels, and the marks on them.
    fn marks(&self, rows: &[Row<'a>], value: impl Fn(&Row<'a>) -> Option<f64>) -> Vec<Marks> {
        let mut marks = Vec::new();
        for &model in &self.models {
            for &adapter in &self.adapters {
                let own = rows.iter().filter(|row| row.measurement.model == model && row.adapter == adapter);
                let mut points: Vec<(f64, f64)> =
                    own.filter_map(|row| Some((log2_side(row.measurement.pixels()), value(row)?))).collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                marks.push(Marks { points, color: self.color(model), shape: self.shape(adapter) });
            }
        }
        marks
    }
}

/// A line through each of `marks`.
fn lines(marks: &[Marks]) -> Vec<Line> {
    let line = |marks: &Marks| Line { points: marks.points.clone(), color: marks.color, dashed: false, name: None };
    marks.iter().map(line).collect()
}

fn all_points(marks: &[Marks], lines: &[Line]) -> Vec<(f64, f64)> {
    let marked = marks.iter().flat_map(|marks| marks.points.iter().copied());
    marked.chain(lines.iter().flat_map(|line| line.points.iter().copied())).collect()
}

/// What of this kind succeeded without a budget.
fn measured_whole<'a>(rows: &[Row<'a>], kind: Kind) -> Vec<Row<'a>> {
    let is_whole = |row: &&Row<'_>| {
        let one = row.measurement;
        let is_kind = one.operation == kind.operation && one.element_bytes() == kind.element_bytes;
        is_kind && one.budget.is_none() && one.measured.is_some()
    };
    rows.iter().filter(is_whole).copied().collect()
}

fn published(operation: Operation) -> impl Iterator<Item = &'static Published> {
    RTX_4090.iter().filter(move |row| row.operation == operation)
}

fn published_entry() -> Entry {
    let text = "PyTorch on an RTX 4090, reserved (InvokeAI)".to_owned();
    Entry { color: GREY, symbol: Shape::Ring.symbol(), text }
}

fn figure(title: String, chart: Chart, legend: Vec<Entry>) -> Result<Figure> {
    Ok(Figure { title, svg: svg(&[chart], SIZE, None)?, legend })
}

/// The peak over the picture's size, for each kind that was measured, with the estimates.
pub(super) fn against_pixels(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for kind in Kind::all() {
        let own = measured_whole(rows, kind);
        if own.is_empty() {
            continue;
        }
        let series = Series::new(&own);
        let peak = |row: &Row<'_>| row.measurement.measured.map(|measured| log2_bytes(measured.ledger_peak));
        let mut marks = series.marks(&own, peak);
        let mut lines = lines(&marks);
        let mut legend = series.legend();
        let mut pixels: Vec<u64> = own.iter().map(|row| row.measurement.pixels()).collect();
        pixels.extend(published(kind.operation).map(|row| u64::from(row.side) * u64::from(row.side)));
        if kind.element_bytes == 2 {
            let points =
                published(kind.operation).map(|row| (f64::from(row.side).log2(), log2_bytes(row.reserved()))).collect();
            marks.push(Marks { points, color: GREY, shape: Shape::Ring });
            legend.push(published_entry());
        }
        lines.extend(estimate_lines(kind, &pixels));
        legend.push(Entry { color: GREY, symbol: '┄', text: "estimates, for SD 1.5".to_owned() });
        let points = all_points(&marks, &lines);
        let chart = Chart {
            x: Axis::sides(SIDES, points.iter().map(|point| point.0)).with_room_for_names(),
            y: Axis::bytes("GPU memory", points.iter().map(|point| point.1)),
            lines,
            marks,
        };
        figures.push(figure(format!("Peak of GPU memory, {}", kind.name()), chart, legend)?);
    }
    Ok(figures)
}

/// What the estimators say about SD 1.5 between the smallest and the largest picture.
fn estimate_lines(kind: Kind, pixels: &[u64]) -> Vec<Line> {
    let Kind { operation, element_bytes } = kind;
    let low = pixels.iter().copied().min().unwrap_or(1).isqrt();
    let high = pixels.iter().copied().max().unwrap_or(1).isqrt();
    let sides: Vec<u32> = (0..=8).filter_map(|step| u32::try_from(low + (high - low) * step / 8).ok()).collect();
    let drawn = [Estimator::InvokeAi, Estimator::VramCalculator, Estimator::Im2col];
    let line = |estimator: Estimator| {
        let point = |&side: &u32| {
            let size = Size { width: side, height: side };
            let work = Work { family: "sd15", operation, size, element_bytes };
            Some((f64::from(side).log2(), log2_bytes(estimator.bytes(&work)?)))
        };
        let points = sides.iter().filter_map(point).collect();
        Line { points, color: GREY, dashed: true, name: Some(estimator.name().to_owned()) }
    };
    drawn.into_iter().map(line).collect()
}

/// Ledger and allocator over the prediction.
pub(super) fn predicted_against_measured(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let measured = |shape: Shape, color: RGBColor, text: &str, value: &dyn Fn(&Row<'_>) -> Option<Bytes>| {
        let point = |row: &Row<'_>| Some((log2_bytes(row.measurement.predicted?.peak), log2_bytes(value(row)?)));
        let points = rows.iter().filter_map(point).collect();
        (Marks { points, color, shape }, Entry { color, symbol: shape.symbol(), text: text.to_owned() })
    };
    let took = |row: &Row<'_>| row.measurement.measured;
    let (marks, legend): (Vec<Marks>, Vec<Entry>) = [
        measured(Shape::Triangle, COLORS[1], "reserved by the allocator", &|row| took(row)?.allocator_reserved),
        measured(Shape::Square, COLORS[5], "handed out by the allocator", &|row| took(row)?.allocator_allocated),
        measured(Shape::Circle, COLORS[0], "counted by wgvae", &|row| Some(took(row)?.ledger_peak)),
    ]
    .into_iter()
    .unzip();
    let points = all_points(&marks, &[]);
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let ends = points.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at.0), high.max(at.0)));
    let equal = vec![(ends.0, ends.0), (ends.1, ends.1)];
    let chart = Chart {
        x: Axis::bytes("predicted peak", points.iter().map(|point| point.0)),
        y: Axis::bytes("measured", points.iter().map(|point| point.1)),
        lines: vec![Line { points: equal, color: GREY, dashed: true, name: None }],
        marks,
    };
    Ok(vec![figure("Measured memory over the prediction; on the line they are equal".to_owned(), chart, legend)?])
}

/// Bytes per pixel and element over the picture's size, as wgvae counts them, for each kind that was measured.
pub(super) fn implied_constants(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for kind in Kind::all() {
        let in_use = f64::from(invokeai_constant(kind.operation));
        let whole = measured_whole(rows, kind);
        if whole.is_empty() {
            continue;
        }
        let series = Series::new(&whole);
        let mut legend = series.legend();
        let mut marks = series.marks(&whole, |row| row.measurement.implied_constants().0);
        let mut lines = lines(&marks);
        if kind.element_bytes == 2 {
            let points =
                published(kind.operation).map(|row| (f64::from(row.side).log2(), row.implied_constant())).collect();
            marks.push(Marks { points, color: GREY, shape: Shape::Ring });
            legend.push(published_entry());
        }
        let at = all_points(&marks, &[]);
        let ends = at.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at.0), high.max(at.0)));
        lines.push(Line {
            points: vec![(ends.0, in_use), (ends.1, in_use)],
            color: GREY,
            dashed: true,
            name: Some(format!("{}: {in_use}", Estimator::InvokeAi.name())),
        });
        let chart = Chart {
            x: Axis::sides(SIDES, at.iter().map(|point| point.0)).with_room_for_names(),
            y: Axis::linear("bytes per pixel and element", at.iter().map(|point| point.1).chain([in_use])),
            lines,
            marks,
        };
        figures.push(figure(
            format!("Bytes besides the weights, per pixel and byte of an element, {}", kind.name()),
            chart,
            legend,
        )?);
    }
    Ok(figures)
}
