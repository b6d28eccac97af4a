// product: the parameters and bindings of the matrix products, and the sum of one element. Uses
// their aliases.

struct Params {
    m: u32,               // rows of a and c; those of all frames, if FRAMES is more than 1
    m_stored: u32,        // rows of c written; those from m on are zero
    n4: u32,              // columns of b and c, in vec4
    k4: u32,              // columns of a, in vec4; b has 4 * k4 rows
    a_offset: u32,        // first element of a
    a_row: u32,           // elements between two rows of a
    a_column: u32,        // elements between two vec4 columns of a
    batch: u32,           // batch entries of each frame
    a_batch: u32,         // elements between two batch entries of a
    a_frame: u32,         // elements between two frames of a; all frames share b
    b_offset: u32,        // first element of b
    b_row: u32,           // elements between two rows of b
    b_block: u32,         // elements between two blocks of columns of b
    b_batch: u32,         // elements between two batch entries of b
    c_offset: u32,        // first element of c
    c_row: u32,           // elements between two rows of c (or of its transpose)
    c_batch: u32,         // elements between two batch entries of c
    c_frame: u32,         // elements between two frames of c
    scale: f32,           // factor of the product, before bias and accumulation
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<Stored>;                // [batch, m, k / 4] or [batch, k / 4, m]
@group(0) @binding(2) var<storage, read> b: array<Stored>;                // [batch, blocks, k, n / 4 / blocks] or [batch, k, n / 4]
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;          // [n / 4]
@group(0) @binding(4) var<storage, read> row_factors: array<f32>;         // [m]
@group(0) @binding(5) var<storage, read_write> c: array<Output>;          // [batch, m, n / 4] or [n, m / 4]

// Adds the products to one sum, in order of k: on drivers that do not reorder, the partial sums
// stay in a register.
fn add_products(sum: f32, row: vec4<f32>, column: vec4<f32>) -> f32 {
    return fma(row.w, column.w, fma(row.z, column.z, fma(row.y, column.y, fma(row.x, column.x, sum))));
}
