//! Fused multiply-adds that not every engine has.
//!
//! An engine without relaxed SIMD refuses a module with a single one of its instructions. So here
//! each multiply-add becomes a product and a sum, with a `nop` between them. The package makes it
//! one instruction again where the engine has it: `fuse` in `web/src/fusing.js`.

use std::convert::Infallible;

use anyhow::{Result, ensure};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, Function, Instruction, Module, ValType};
use wasmparser::{FunctionBody, Operator, Parser, Payload, Validator, WasmFeatures};

/// `f32x4.mul`, `nop` and `local.get`, which take the place of a multiply-add together with the
/// local and [`SUM`].
const PRODUCT: [u8; 5] = [0xfd, 0xe6, 0x01, 0x01, 0x20];

/// `f32x4.add`.
const SUM: [u8; 3] = [0xfd, 0xe4, 0x01];

/// Returns `module` with a product and a sum for each multiply-add.
pub(crate) fn split(module: &[u8]) -> Result<Vec<u8>> {
    let mut splitting = Splitting::of(module)?;
    let mut split = Module::new();
    splitting.parse_core_module(&mut split, Parser::new(0), module)?;
    let split = split.finish();
    let places = places(&split).count();
    ensure!(places == splitting.count, "expected {} multiply-adds, found {places}", splitting.count);
    let features = WasmFeatures::default().difference(WasmFeatures::RELAXED_SIMD);
    Validator::new_with_features(features).validate_all(&split)?;
    Ok(split)
}

/// Returns where the package will find products and sums to fuse.
pub(crate) fn places(module: &[u8]) -> impl Iterator<Item = usize> {
    (0..module.len()).filter(|&at| {
        // The number of the local has one or two bytes.
        let sum = module[at..].strip_prefix(&PRODUCT).and_then(|rest| match rest {
            [0x80..=0xff, 0..0x80, sum @ ..] | [0..0x80, sum @ ..] => Some(sum),
            _ => None,
        });
        sum.is_some_and(|sum| sum.starts_with(&SUM))
    })
}

struct Splitting {
    /// Number of parameters of each function.
    parameters: Vec<u32>,
    /// Functions that are done.
    done: usize,
    /// Multiply-adds so far.
    count: usize,
}

impl Splitting {
    fn of(module: &[u8]) -> Result<Self> {
        let (mut types, mut parameters) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => {
                    for function in section.into_iter_err_on_gc_types() {
                        types.push(u32::try_from(function?.params().len())?);
                    }
                }
                Payload::FunctionSection(section) => {
                    for function in section {
                        parameters.push(types[function? as usize]);
                    }
                }
                _ => {}
            }
        }
        Ok(Self { parameters, done: 0, count: 0 })
    }
}

impl Reencode for Splitting {
    type Error = Infallible;

    fn parse_function_body(&mut self, code: &mut CodeSection, body: FunctionBody<'_>) -> Result<(), Error> {
        let operators = body.get_operators_reader()?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut locals = Vec::new();
        for group in body.get_locals_reader()? {
            let (count, kind) = group?;
            locals.push((count, self.val_type(kind)?));
        }
        let spare = self.parameters[self.done] + locals.iter().map(|(count, _)| count).sum::<u32>();
        if operators.windows(2).any(|pair| is_fused(&pair[1]) && !matches!(pair[0], Operator::LocalGet { .. })) {
            locals.push((1, ValType::V128));
        }
        let mut function = Function::new(locals);
        for (index, operator) in operators.iter().enumerate() {
            let ends_in_fused = operators.get(index + 1).is_some_and(is_fused);
            // The third operand of a multiply-add, which is the last on the stack.
            let added = match operator {
                Operator::LocalGet { local_index } if ends_in_fused => *local_index,
                _ => {
                    function.instruction(&match operator {
                        Operator::F32x4RelaxedMadd => Instruction::F32x4Add,
                        other => self.instruction(other.clone())?,
                    });
                    self.count += usize::from(is_fused(operator));
                    if !ends_in_fused {
                        continue;
                    }
                    function.instructions().local_set(spare);
                    spare
                }
            };
            function.instructions().f32x4_mul().nop().local_get(added);
        }
        code.function(&function);
        self.done += 1;
        Ok(())
    }
}

fn is_fused(operator: &Operator<'_>) -> bool {
    matches!(operator, Operator::F32x4RelaxedMadd)
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{FunctionSection, InstructionSink, TypeSection};

    use super::*;

    /// Returns a module of one function with three vectors as parameters, and groups of vectors
    /// as locals.
    fn module(locals: &[u32], write: impl FnOnce(&mut InstructionSink<'_>)) -> Vec<u8> {
        let (mut types, mut functions, mut code) = (TypeSection::new(), FunctionSection::new(), CodeSection::new());
        types.ty().function([ValType::V128; 3], [ValType::V128]);
        functions.function(0);
        let mut function = Function::new(locals.iter().map(|count| (*count, ValType::V128)));
        write(&mut function.instructions());
        code.function(&function);
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&code);
        module.finish()
    }

    #[test]
    fn a_local_is_added_where_it_lies() {
        for local in [2, 150] {
            let fused = module(&[200], |to| {
                to.local_get(0).local_get(1).local_get(local).f32x4_relaxed_madd().end();
            });
            let wanted = module(&[200], |to| {
                to.local_get(0).local_get(1).f32x4_mul().nop().local_get(local).f32x4_add().end();
            });
            assert_eq!(split(&fused).unwrap(), wanted);
            assert_eq!(places(&wanted).count(), 1);
        }
    }

    #[test]
    fn other_operands_wait_in_a_spare_local() {
        let fused = module(&[], |to| {
            to.local_get(0).local_get(1).local_get(0).local_get(1).local_get(2);
            to.f32x4_relaxed_madd().f32x4_relaxed_madd().end();
        });
        let wanted = module(&[1], |to| {
            to.local_get(0).local_get(1).local_get(0).local_get(1);
            to.f32x4_mul().nop().local_get(2).f32x4_add().local_set(3);
            to.f32x4_mul().nop().local_get(3).f32x4_add().end();
        });
        assert_eq!(split(&fused).unwrap(), wanted);
        assert_eq!(places(&wanted).count(), 2);
    }

    #[test]
    fn other_relaxed_instructions_are_refused() {
        let relaxed = module(&[], |to| {
            to.local_get(0).local_get(1).local_get(2).f32x4_relaxed_nmadd().end();
        });
        let error = split(&relaxed).unwrap_err().to_string();
        assert!(error.contains("relaxed SIMD"), "{error}");
    }

    #[test]
    fn a_product_and_a_sum_of_the_compiler_stay_apart() {
        let plain = module(&[], |to| {
            to.local_get(0).local_get(1).f32x4_mul().local_get(2).f32x4_add().end();
        });
        assert_eq!(split(&plain).unwrap(), plain);
        assert_eq!(places(&plain).count(), 0);
    }
}
