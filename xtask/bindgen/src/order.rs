//! Order of the functions in a wasm module. gzip finds only what the last 32 KB have as well, so
//! functions that are alike stand next to each other here: a page fetches 3 % less.

use anyhow::Result;
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{CodeSectionReader, FunctionSectionReader, Parser, Payload, TypeRef};

/// Lengths in bytes of the pieces by which functions are compared. Longer matches count several
/// times, as they save gzip more. Together they give up to 0.2 % less than 6 alone.
const PIECES: [usize; 3] = [4, 6, 10];

/// Most functions with a piece that tells anything about them.
const MOST: usize = 80;

/// Bytes of functions to which the next one is compared. Less than gzip's 32 KB, as it finds what
/// is near in fewer bits. Which of them is best changes with every build, by up to 1 KB.
const WINDOWS: [usize; 3] = [20_000, 24_000, 28_000];

/// Power of a function's length by which what it has in common counts. With 1 the shortest come
/// first, which leaves the long ones without others that are alike.
const LENGTH: f32 = 0.6;

/// Returns `module` with its functions in orders that compress well, one for each of [`WINDOWS`].
pub(crate) fn arrange(module: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut imported = 0;
    let mut bodies = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
            _ => {}
        }
    }
    let pieces = Pieces::find(&bodies);
    let reencode = |window| {
        let order = alike(&bodies, &pieces, window);
        let mut places = vec![0; order.len()];
        for (place, &function) in (imported..).zip(&order) {
            places[function] = place;
        }
        let mut arranged = Module::new();
        Arranging { imported, order, places }.parse_core_module(&mut arranged, Parser::new(0), module)?;
        Ok(arranged.finish())
    };
    WINDOWS.map(reencode).into_iter().collect()
}

/// Moves functions, and changes what refers to them.
struct Arranging {
    imported: u32,
    /// Functions of the module in their new order, and the new index of each.
    order: Vec<usize>,
    places: Vec<u32>,
}

impl Reencode for Arranging {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, Error> {
        let own = function.checked_sub(self.imported);
        Ok(own.map_or(function, |own| self.places[own as usize]))
    }

    fn parse_function_section(
        &mut self,
        to: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error> {
        let types = section.into_iter().collect::<Result<Vec<_>, _>>()?;
        for &function in &self.order {
            to.function(types[function]);
        }
        Ok(())
    }

    fn parse_code_section(&mut self, to: &mut CodeSection, section: CodeSectionReader<'_>) -> Result<(), Error> {
        let bodies = section.into_iter().collect::<Result<Vec<_>, _>>()?;
        for function in self.order.clone() {
            self.parse_function_body(to, bodies[function].clone())?;
        }
        Ok(())
    }
}

/// Returns the order of `functions`: the longest one, then always the one that has most in common
/// with those in the `window` bytes before it, for its length.
fn alike(functions: &[&[u8]], pieces: &Pieces, window: usize) -> Vec<usize> {
    let weights: Vec<f32> = functions.iter().map(|function| (function.len() as f32).powf(LENGTH)).collect();
    let mut common = vec![0.0; functions.len()];
    let mut near = vec![0_u32; pieces.functions.len()];
    let mut left: Vec<usize> = (0..functions.len()).collect();
    let mut order = Vec::new();
    let (mut first, mut length) = (0, 0);
    let mut next = left.iter().copied().max_by_key(|&function| functions[function].len());
    while let Some(function) = next {
        left.retain(|&other| other != function);
        order.push(function);
        length += functions[function].len();
        for &piece in &pieces.of[function] {
            near[piece] += 1;
            if near[piece] == 1 {
                pieces.add(piece, 1.0, &mut common);
            }
        }
        while length > window && first + 1 < order.len() {
            length -= functions[order[first]].len();
            for &piece in &pieces.of[order[first]] {
                near[piece] -= 1;
                if near[piece] == 0 {
                    pieces.add(piece, -1.0, &mut common);
                }
            }
            first += 1;
        }
        let share = |function: usize| common[function] / weights[function];
        next = left.iter().copied().max_by(|&a, &b| share(a).total_cmp(&share(b)));
    }
    order
}

/// The pieces that several functions have, without order and place.
struct Pieces {
    /// Functions with each piece.
    functions: Vec<Vec<usize>>,
    /// Pieces of each function.
    of: Vec<Vec<usize>>,
}

impl Pieces {
    fn find(functions: &[&[u8]]) -> Self {
        let mut all: Vec<(&[u8], usize)> = functions
            .iter()
            .enumerate()
            .flat_map(|(function, bytes)| {
                PIECES.into_iter().flat_map(|length| bytes.windows(length)).map(move |piece| (piece, function))
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        let shared = all.chunk_by(|a, b| a.0 == b.0).filter(|chunk| (2..=MOST).contains(&chunk.len()));
        let with: Vec<Vec<usize>> = shared.map(|chunk| chunk.iter().map(|&(_, function)| function).collect()).collect();
        let mut of = vec![Vec::new(); functions.len()];
        for (piece, functions) in with.iter().enumerate() {
            for &function in functions {
                of[function].push(piece);
            }
        }
        Self { functions: with, of }
    }

    /// Adds a piece to what its functions have in common with others: the rarer, the more.
    fn add(&self, piece: usize, times: f32, common: &mut [f32]) {
        let functions = &self.functions[piece];
        for &function in functions {
            common[function] += times / (functions.len() as f32).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{EntityType, ExportKind, ExportSection, Function, ImportSection, TypeSection};
    use wasmparser::{FunctionBody, Operator};

    use super::*;

    /// Constants of functions: the first and the third are alike.
    const CONSTANTS: [[i32; 3]; 3] = [[1 << 30, 2 << 20, 3 << 20], [4, 5, 6], [1 << 30, 2 << 20, 7]];

    /// Returns a module of one import and a function for each of [`CONSTANTS`]. Function n has type
    /// n, is exported as "n", and calls itself.
    fn module() -> Vec<u8> {
        let (mut types, mut imports, mut functions) =
            (TypeSection::new(), ImportSection::new(), FunctionSection::new());
        let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
        imports.import("i", "0", EntityType::Function(0));
        for (constants, own) in CONSTANTS.into_iter().zip(0..) {
            types.ty().function(vec![wasm_encoder::ValType::I32; own as usize], []);
            functions.function(own);
            exports.export(&own.to_string(), ExportKind::Func, own + 1);
            let mut function = Function::new([]);
            for constant in constants {
                function.instructions().i32_const(constant).drop();
            }
            function.instructions().call(own + 1).end();
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&exports).section(&code);
        module.finish()
    }

    fn operators<'a>(body: &FunctionBody<'a>) -> Vec<Operator<'a>> {
        body.get_operators_reader().unwrap().into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn moved_functions_keep_their_types_names_and_callers() {
        let arranged = arrange(&module()).unwrap().remove(0);
        let (mut types, mut names, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(&arranged) {
            match payload.unwrap() {
                Payload::FunctionSection(section) => types.extend(section.into_iter().map(Result::unwrap)),
                Payload::ExportSection(section) => names.extend(section.into_iter().map(Result::unwrap)),
                Payload::CodeSectionEntry(body) => bodies.push(operators(&body)),
                _ => {}
            }
        }
        assert_eq!(types, [0, 2, 1]);
        for export in names {
            let (own, place) = (export.name.parse::<usize>().unwrap(), export.index as usize - 1);
            assert_eq!(types[place] as usize, own);
            assert_eq!(bodies[place][0], Operator::I32Const { value: CONSTANTS[own][0] });
            assert!(bodies[place].contains(&Operator::Call { function_index: export.index }));
        }
    }

    #[test]
    fn functions_that_are_alike_stand_together() {
        let functions: [&[u8]; 4] = [b"one of a kind", b"0123456789 and a long end", b"abcdefgh", b"0123456789"];
        assert_eq!(alike(&functions, &Pieces::find(&functions), 20_000)[..2], [1, 3]);
        assert!(alike(&[], &Pieces::find(&[]), 20_000).is_empty());
    }
}
