//! The page's plots.

use plotters::style::RGBColor;
use wgvae::report::Operation;
use wgvae::report::estimates::{Estimator, Work};
use wgvae::report::published::RTX_4090;
use wgvae::{Bytes, Result, Size};

use super::html::Row;
use crate::cli::chart::{Axis, COLORS, Chart, GREY, Line, Marks, Shape, log2_bytes, log2_side, svg};

/// Pixels of a plot.
const SIZE: (u32, u32) = (760, 460);

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

/// Distinct values in order of first appearance.
fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Measured rows, by model in a colour and by adapter in a shape.
struct Series<'a> {
    models: Vec<&'a str>,
    adapters: Vec<String>,
}

impl<'a> Series<'a> {
    fn new(rows: &[Row<'a>]) -> Self {
        Self {
            models: distinct(rows.iter().map(|row| row.measurement.model.as_str())),
            adapters: distinct(rows.iter().map(Row::adapter)),
        }
    }

    fn color(&self, model: &str) -> RGBColor {
        let index = self.models.iter().position(|known| *known == model).unwrap_or(0);
        COLORS[index % COLORS.len()]
    }

    fn shape(&self, adapter: &str) -> Shape {
        // Rings are for what others measured.
        let index = self.adapters.iter().position(|known| known == adapter).unwrap_or(0);
        Shape::ALL[index % (Shape::ALL.len() - 1)]
    }

    fn legend(&self) -> Vec<Entry> {
        let models = self.models.iter().map(|model| Entry {
            color: self.color(model),
            symbol: '━',
            text: (*model).to_owned(),
        });
        let adapters = self.adapters.iter().map(|adapter| Entry {
            color: GREY,
            symbol: self.shape(adapter).symbol(),
            text: adapter.clone(),
        });
        models.chain(adapters).collect()
    }

    /// Points of each model and adapter, in order of pixels, and the marks on them.
    fn marks(&self, rows: &[Row<'a>], value: impl Fn(&Row<'a>) -> Option<f64>) -> Vec<Marks> {
        let mut marks = Vec::new();
        for &model in &self.models {
            for adapter in &self.adapters {
                let own = rows.iter().filter(|row| row.measurement.model == model && &row.adapter() == adapter);
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

fn figure(title: String, chart: Chart, legend: Vec<Entry>) -> Result<Figure> {
    Ok(Figure { title, svg: svg(&[chart], SIZE, None)?, legend })
}

/// The peak over the picture's size, for each size of an element that was measured, with the estimates.
pub(super) fn against_pixels(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for element_bytes in [2, 4] {
        let is_shown = |row: &&Row<'_>| {
            let one = row.measurement;
            one.element_bytes() == element_bytes && one.budget.is_none() && one.measured.is_some()
        };
        let own: Vec<Row<'_>> = rows.iter().filter(is_shown).copied().collect();
        if own.is_empty() {
            continue;
        }
        let series = Series::new(&own);
        let peak = |row: &Row<'_>| row.measurement.measured.map(|measured| log2_bytes(measured.ledger_peak));
        let mut marks = series.marks(&own, peak);
        let mut lines = lines(&marks);
        let mut legend = series.legend();
        let mut pixels: Vec<u64> = own.iter().map(|row| row.measurement.pixels()).collect();
        if element_bytes == 2 {
            let published = RTX_4090.iter().filter(|row| row.operation == Operation::Decode);
            pixels.extend(published.clone().map(|row| u64::from(row.side) * u64::from(row.side)));
            let points = published.map(|row| (f64::from(row.side).log2(), log2_bytes(row.reserved()))).collect();
            marks.push(Marks { points, color: GREY, shape: Shape::Ring });
            let text = "PyTorch on an RTX 4090, reserved (InvokeAI)".to_owned();
            legend.push(Entry { color: GREY, symbol: Shape::Ring.symbol(), text });
        }
        lines.extend(estimate_lines(element_bytes, &pixels));
        legend.push(Entry { color: GREY, symbol: '┄', text: "estimates, for SD 1.5".to_owned() });
        let points = all_points(&marks, &lines);
        let chart = Chart {
            x: Axis::sides("pixels of the picture, as a square", points.iter().map(|point| point.0)),
            y: Axis::bytes("GPU memory", points.iter().map(|point| point.1)),
            lines,
            marks,
        };
        let name = if element_bytes == 2 { "f16" } else { "f32" };
        figures.push(figure(format!("Peak of GPU memory, {name}"), chart, legend)?);
    }
    Ok(figures)
}

/// What the estimators say about SD 1.5 between the smallest and the largest picture.
fn estimate_lines(element_bytes: u64, pixels: &[u64]) -> Vec<Line> {
    let low = pixels.iter().copied().min().unwrap_or(1).isqrt();
    let high = pixels.iter().copied().max().unwrap_or(1).isqrt();
    let sides: Vec<u32> = (0..=8).filter_map(|step| u32::try_from(low + (high - low) * step / 8).ok()).collect();
    let drawn = [Estimator::InvokeAi, Estimator::VramCalculator, Estimator::Im2col];
    let line = |estimator: Estimator| {
        let point = |&side: &u32| {
            let size = Size { width: side, height: side };
            let work = Work { family: "sd15", operation: Operation::Decode, size, element_bytes };
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

/// Bytes per pixel and element over the picture's size, by the allocator's reservation, and by the ledger where that is not known.
pub(super) fn implied_constants(rows: &[Row<'_>]) -> Result<Vec<Figure>> {
    let whole: Vec<Row<'_>> =
        rows.iter().filter(|row| row.measurement.budget.is_none() && row.measurement.measured.is_some()).copied().collect();
    if whole.is_empty() {
        return Ok(Vec::new());
    }
    let series = Series::new(&whole);
    let mut marks = series.marks(&whole, |row| row.measurement.implied_constants().0);
    let published = RTX_4090.iter().filter(|row| row.operation == Operation::Decode);
    let points: Vec<(f64, f64)> =
        published.map(|row| (f64::from(row.side).log2(), row.implied_constant())).collect();
    marks.push(Marks { points, color: GREY, shape: Shape::Ring });
    let at = all_points(&marks, &[]);
    let ends = at.iter().fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at.0), high.max(at.0)));
    let constant = Line {
        points: vec![(ends.0, 2200.0), (ends.1, 2200.0)],
        color: GREY,
        dashed: true,
        name: Some("InvokeAI's constant in use: 2200".to_owned()),
    };
    let mut legend = series.legend();
    let text = "PyTorch on an RTX 4090, reserved (InvokeAI)".to_owned();
    legend.push(Entry { color: GREY, symbol: Shape::Ring.symbol(), text });
    let chart = Chart {
        x: Axis::sides("pixels of the picture, as a square", at.iter().map(|point| point.0)),
        y: Axis::linear("bytes per pixel and element", at.iter().map(|point| point.1).chain([2200.0])),
        lines: vec![constant],
        marks,
    };
    Ok(vec![figure("Bytes besides the weights, per pixel and byte of an element".to_owned(), chart, legend)?])
}
