//! Lets the linker of macOS leave Python's symbols to the interpreter that imports the module.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
