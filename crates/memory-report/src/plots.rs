//! Plots of the page.

use plotters::style::RGBColor;
use wgvae::{Bytes, Direction, Result, Size};

use super::labels::distinct;
use super::rows::Row;
use super::runs::Runs;
use crate::Measurement;
use crate::chart::{Axis, COLORS, Chart, GREY, Line, Marks, Shape, log2_bytes, log2_count, log2_side, svg};
use crate::estimates::{Estimator, Work, invokeai_constant};
use crate::published::{Published, RTX_4090};

/// Width and height of a plot, pixels.
const SIZE: (u32, u32) = (760, 460);

/// Name of the axis of picture sizes.
const SIDES: &str = "pixels of the picture, as a square";

/// Kind of runs that are drawn together.
#[derive(Debug, Clone, Copy)]
struct Kind {
    runs: Runs,
    /// Bytes of an element.
    element_bytes: u64,
}

impl Kind {
    fn all() -> impl Iterator<Item = Self> {
        Runs::all().flat_map(|runs| [2, 4].map(|element_bytes| Self { runs, element_bytes }))
    }

    fn images() -> impl Iterator<Item = Self> {
        Self::all().filter(|kind| !kind.runs.are_clips)
    }

    fn clips() -> impl Iterator<Item = Self> {
        Self::all().filter(|kind| kind.runs.are_clips)
    }

    /// Returns the name of these runs.
    fn name(self) -> String {
        format!("{} in {}", self.runs.name(), if self.element_bytes == 2 { "f16" } else { "f32" })
    }
}

/// Plot with its legend.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) svg: String,
    pub(super) legend: Vec<Entry>,
}

/// Line of a legend.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) color: RGBColor,
    pub(super) symbol: char,
    pub(super) text: String,
}

/// Measured rows with a colour for each subject and a shape for each adapter.
struct Series<'a> {
    /// Returns the subject of a row: the model, or the model and size.
    subject: fn(&Measurement) -> String,
    subjects: Vec<String>,
    adapters: Vec<&'a str>,
}

impl<'a> Series<'a> {
    /// Groups rows by model, in all sizes.
    fn of_models(rows: &[Row<'a>]) -> Self {
        Self::new(rows, |one| one.model.clone())
    }

    /// Groups rows by model and size.
    fn of_sizes(rows: &[Row<'a>]) -> Self {
        Self::new(rows, |one| format!("{} {}", one.model, one.size()))
    }

    fn new(rows: &[Row<'a>], subject: fn(&Measurement) -> String) -> Self {
        Self {
            subject,
            subjects: distinct(rows.iter().map(|row| subject(row.measurement))),
            adapters: distinct(rows.iter().map(|row| row.adapter)),
        }
    }

    fn color(&self, subject: &str) -> RGBColor {
        let index = self.subjects.iter().position(|known| *known == subject).unwrap_or(0);
        COLORS[index % COLORS.len()]
    }

    fn shape(&self, adapter: &str) -> Shape {
        // Rings are for measurements by others.
        let index = self.adapters.iter().position(|known| *known == adapter).unwrap_or(0);
        Shape::ALL[index % (Shape::ALL.len() - 1)]
    }

    fn legend(&self) -> Vec<Entry> {
        let subjects = self.subjects.iter().map(|subject| Entry {
            color: self.color(subject),
            symbol: '━',
            text: subject.clone(),
        });
        let adapters = self.adapters.iter().map(|adapter| Entry {
            color: GREY,
            symbol: self.shape(adapter).symbol(),
            text: (*adapter).to_owned(),
        });
        subjects.chain(adapters).collect()
    }

    /// Returns the marks of each subject and adapter, sorted from left to right.
    fn marks(
        &self,
        rows: &[Row<'a>],
        across: fn(&Measurement) -> f64,
        value: impl Fn(&Measurement) -> Option<f64>,
    ) -> Vec<Marks> {
        let mut marks = Vec::new();
        for subject in &self.subjects {
            for &adapter in &self.adapters {
                let own = rows.iter().filter(|row| row.adapter == adapter).map(|row| row.measurement);
                let own = own.filter(|one| (self.subject)(one) == *subject);
                let mut points: Vec<(f64, f64)> = own.filter_map(|one| Some((across(one), value(one)?))).collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                marks.push(Marks { points, color: self.color(subject), shape: self.shape(adapter) });
            }
        }
        marks
    }
}

/// Draws a line through each of `marks`.
fn lines(marks: &[Marks]) -> Vec<Line> {
    let line = |marks: &Marks| Line { points: marks.points.clone(), color: marks.color, dashed: false, name: None };
    marks.iter().map(line).collect()
}

fn all_points(marks: &[Marks], lines: &[Line]) -> Vec<(f64, f64)> {
    let marked = marks.iter().flat_map(|marks| marks.points.iter().copied());
    marked.chain(lines.iter().flat_map(|line| line.points.iter().copied())).collect()
}

/// Returns the rows of this kind that succeeded without a budget.
fn measured_whole<'a>(rows: &[Row<'a>], kind: Kind) -> Vec<Row<'a>> {
    let is_whole = |row: &&Row<'_>| {
        let one = row.measurement;
        let is_kind = Runs::of(one) == kind.runs && one.element_bytes() == kind.element_bytes;
        is_kind && one.budget.is_none() && one.measured.is_some()
    };
    rows.iter().filter(is_whole).copied().collect()
}

fn published(operation: Direction) -> impl Iterator<Item = &'static Published> {
    RTX_4090.iter().filter(move |row| row.operation == operation)
}

fn published_entry() -> Entry {
    let text = "PyTorch on an RTX 4090, reserved (InvokeAI)".to_owned();
    Entry { color: GREY, symbol: Shape::Ring.symbol(), text }
}

fn figure(title: String, chart: Chart, legend: Vec<Entry>) -> Result<Figure> {
    Ok(Figure { title, svg: svg(&[chart], SIZE, None)?, legend })
}

/// Returns the coordinate of the measured peak.
fn peak(row: &Measurement) -> Option<f64> {
    row.measured.map(|measured| log2_bytes(measured.ledger_peak))
}

/// Returns the coordinate of the picture's size.
fn side(row: &Measurement) -> f64 {
    log2_side(row.pixels())
}

/// Plots the peak over the picture's size, for each kind that was measured, with the estimates.
pub(super) fn against_pixels(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for kind in Kind::images() {
        let own = measured_whole(rows, kind);
        if own.is_empty() {
            continue;
        }
        let series = Series::of_models(&own);
        let mut marks = series.marks(&own, side, peak);
        let mut lines = lines(&marks);
        let mut legend = series.legend();
        let mut pixels: Vec<u64> = own.iter().map(|row| row.measurement.pixels()).collect();
        pixels.extend(published(kind.runs.operation).map(|row| u64::from(row.side) * u64::from(row.side)));
        if kind.element_bytes == 2 {
            let own = published(kind.runs.operation);
            let points = own.map(|row| (f64::from(row.side).log2(), log2_bytes(row.reserved()))).collect();
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

/// Plots the peak over a clip's frames, for each kind that was measured.
pub(super) fn against_frames(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for kind in Kind::clips() {
        let own = measured_whole(rows, kind);
        if own.is_empty() {
            continue;
        }
        let series = Series::of_sizes(&own);
        let marks = series.marks(&own, |row| log2_count(row.frames.unwrap_or(1)), peak);
        let lines = lines(&marks);
        let points = all_points(&marks, &[]);
        let chart = Chart {
            x: Axis::counts("pictures of the clip", points.iter().map(|point| point.0)),
            y: Axis::bytes("GPU memory", points.iter().map(|point| point.1)),
            lines,
            marks,
        };
        figures.push(figure(format!("Peak of GPU memory, {}", kind.name()), chart, series.legend())?);
    }
    Ok(figures)
}

/// Returns lines of the estimators for SD 1.5 between the smallest and the largest picture.
fn estimate_lines(kind: Kind, pixels: &[u64]) -> Vec<Line> {
    let Kind { runs: Runs { operation, .. }, element_bytes } = kind;
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

/// Plots the bytes of ledger and allocator over the prediction.
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

/// Plots bytes per pixel and element, as wgvae counts them, over the picture's size, for each kind
/// that was measured.
pub(super) fn implied_constants(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for kind in Kind::images() {
        let in_use = f64::from(invokeai_constant(kind.runs.operation));
        let whole = measured_whole(rows, kind);
        if whole.is_empty() {
            continue;
        }
        let series = Series::of_models(&whole);
        let mut legend = series.legend();
        let mut marks = series.marks(&whole, side, |row| row.implied_constants().0);
        let mut lines = lines(&marks);
        if kind.element_bytes == 2 {
            let own = published(kind.runs.operation);
            let points = own.map(|row| (f64::from(row.side).log2(), row.implied_constant())).collect();
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
