//! The safetensors parser: every kind of bad file, then random ones, and files of our own writer.

use pollster::block_on;
use proptest::prelude::*;
use test_kit::repository;
use wgvae::HostTensor;
use wgvae::files::{ByteSource, DType, MemorySource, ReadFuture};
use wgvae::internals::safetensors::{ElementType, MAX_HEADER_BYTES, read_header, read_tensor, write_safetensors};

/// Returns a file with this header and `data_bytes` zeros after it.
fn file(header: &str, data_bytes: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + data_bytes, 0);
    file
}

fn entry(name: &str, dtype: &str, shape: &str, begin: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
}

fn parse_error(bytes: Vec<u8>) -> String {
    let error = block_on(read_header(&MemorySource::new("bad.safetensors", bytes))).expect_err("must be refused");
    let text = error.to_string();
    assert!(text.starts_with("bad.safetensors: "), "{text}");
    text
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn refuses_bad_headers() {
    let huge = "18446744073709551615";
    let cases = [
        ("not json", "{nonsense".to_owned(), 0, "not a safetensors header"),
        ("empty header", String::new(), 0, "not a safetensors header"),
        ("not an object", "[]".to_owned(), 0, "not a safetensors header"),
        ("text after the object", "{} x".to_owned(), 0, "not a safetensors header"),
        ("deep nesting", "[".repeat(100_000), 0, "not a safetensors header"),
        ("deep nesting in an entry", format!(r#"{{"a":{}"#, "[".repeat(100_000)), 0, r#""a""#),
        (
            "entry without shape",
            r#"{"a":{"dtype":"F32","data_offsets":[0,4]}}"#.to_owned(),
            4,
            r#""a": missing field `shape`"#,
        ),
        ("entry of a wrong type", r#"{"a":7}"#.to_owned(), 0, r#""a""#),
        ("negative extent", format!("{{{}}}", entry("a", "F32", "[-1]", 0, 4)), 4, r#""a""#),
        ("fractional extent", format!("{{{}}}", entry("a", "F32", "[1.5]", 0, 4)), 4, r#""a""#),
        ("metadata that is no map", r#"{"__metadata__":3}"#.to_owned(), 0, r#""__metadata__""#),
        ("metadata that is no text", r#"{"__metadata__":{"a":3}}"#.to_owned(), 0, r#""__metadata__""#),
        (
            "name used twice",
            format!("{{{},{}}}", entry("a", "F32", "[1]", 0, 4), entry("a", "F32", "[1]", 4, 8)),
            8,
            r#""a": this name occurs twice"#,
        ),
        (
            "overlap",
            format!("{{{},{}}}", entry("a", "F32", "[2]", 0, 8), entry("b", "F32", "[2]", 4, 12)),
            12,
            r#"tensor "b" starts at byte 4 and overlaps a, which ends at 8"#,
        ),
        (
            "hole",
            format!("{{{},{}}}", entry("a", "F32", "[1]", 0, 4), entry("b", "F32", "[1]", 8, 12)),
            12,
            r#"4 unused bytes between a and tensor "b""#,
        ),
        (
            "hole at the start",
            format!("{{{}}}", entry("a", "F32", "[1]", 4, 8)),
            8,
            "4 unused bytes between the header",
        ),
        (
            "bytes left over",
            format!("{{{}}}", entry("a", "F32", "[1]", 0, 4)),
            9,
            "5 unused bytes after the last tensor",
        ),
        (
            "data cut off",
            format!("{{{}}}", entry("a", "F32", "[2]", 0, 8)),
            7,
            r#"tensor "a" ends at byte 8, but there are 7"#,
        ),
        ("end before start", format!("{{{}}}", entry("a", "F32", "[1]", 4, 0)), 4, "before its start"),
        ("too few bytes", format!("{{{}}}", entry("a", "F32", "[2]", 0, 4)), 4, r#""a": shape [2] of F32 has 8 bytes"#),
        (
            "too many bytes",
            format!("{{{}}}", entry("a", "F16", "[1]", 0, 4)),
            4,
            r#""a": shape [1] of F16 has 2 bytes"#,
        ),
        ("half a byte", format!("{{{}}}", entry("a", "F4", "[1]", 0, 1)), 1, "does not end at a whole byte"),
        (
            "offset beyond 64 bits",
            format!("{{{}}}", entry("a", "F32", "[1]", 0, 4)).replace("4]", "99999999999999999999]"),
            4,
            r#""a""#,
        ),
        ("offset at the limit", format!("{{{}}}", entry("a", "F32", "[1]", 0, u64::MAX)), 4, "truncated"),
        (
            "too many elements",
            format!("{{{}}}", entry("a", "F32", &format!("[{huge},{huge}]"), 0, 4)),
            4,
            "64 bits can count",
        ),
        ("too many bits", format!("{{{}}}", entry("a", "F32", &format!("[{huge}]"), 0, 4)), 4, "64 bits can count"),
    ];
    for (case, header, data_bytes, wanted) in cases {
        let text = parse_error(file(&header, data_bytes));
        assert!(text.contains(wanted), "{case}: {text}");
    }
}

#[test]
fn refuses_bad_beginnings() {
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("empty", Vec::new(), "0 bytes are too few"),
        ("seven bytes", vec![0; 7], "7 bytes are too few"),
        ("header longer than the file", file("{}", 0)[..9].to_vec(), "truncated: the header has 2 bytes, the file 9"),
        ("header over the cap", (MAX_HEADER_BYTES + 1).to_le_bytes().to_vec(), "its header would have 100000001 bytes"),
        ("header of all bytes", vec![0xff; 64], "its header would have 18446744073709551615 bytes"),
        ("header not UTF-8", [&file("{}", 0)[..8], &[0xff, 0xfe]].concat(), "not a safetensors header"),
        ("pickle in a zip", b"PK\x03\x04rest of it".to_vec(), "PyTorch checkpoint: convert"),
        ("bare pickle", b"\x80\x02}q\x00(X\x05".to_vec(), "pickle"),
        ("Git LFS pointer", b"version https://git-lfs.github.com/spec/v1".to_vec(), "Git LFS"),
        ("web page", b"<!DOCTYPE html><html>".to_vec(), "web page"),
    ];
    for (case, bytes, wanted) in cases {
        let text = parse_error(bytes);
        assert!(text.contains(wanted), "{case}: {text}");
    }
}

/// Lengths whose first bytes are those of a pickle.
#[test]
fn reads_headers_of_every_length() {
    for length in [640, 640 + (1 << 16)] {
        let header = format!("{{{}}}", entry("a", "F32", "[1]", 0, 4));
        let bytes = file(&(header.clone() + &" ".repeat(length - header.len())), 4);
        assert!(bytes.starts_with(b"\x80\x02"));
        let header = block_on(read_header(&MemorySource::new("long", bytes))).expect("a valid file");
        assert_eq!(header.tensors["a"].offset, 8 + length as u64);
    }
}

#[test]
fn lists_types_it_cannot_read() {
    let header = format!(
        r#"{{"__metadata__":{{"format":"pt"}},{},{},{},{},{}}}  "#,
        entry("half", "BF16", "[2,3]", 0, 12),
        entry("ids", "I64", "[2]", 12, 28),
        entry("small", "F8_E4M3", "[3]", 28, 31),
        entry("of the future", "F3", "[8]", 31, 34),
        entry("empty", "F32", "[0,7]", 34, 34)
    );
    let source = MemorySource::new("mixed", file(&header, 34));
    let header = block_on(read_header(&source)).expect("a valid file");
    assert_eq!(header.metadata["format"], "pt");
    assert_eq!(header.tensors["half"].dtype, ElementType::Float(DType::BF16));
    assert_eq!(header.tensors["half"].shape, [2, 3]);
    assert_eq!(header.tensors["ids"].bytes, 16);
    assert_eq!(header.tensors["ids"].offset - header.tensors["half"].offset, 12);
    for (name, dtype) in [("ids", "I64"), ("small", "F8_E4M3"), ("of the future", "F3")] {
        let info = &header.tensors[name];
        assert_eq!(info.dtype.to_string(), dtype);
        let text = block_on(read_tensor(&source, name, info)).expect_err("not weights").to_string();
        assert_eq!(text, format!("tensor \"{name}\": expected elements of type F32, F16 or BF16, found {dtype}"));
    }
    let empty = block_on(read_tensor(&source, "empty", &header.tensors["empty"])).expect("no elements");
    assert_eq!(empty, HostTensor { shape: vec![0, 7], data: Vec::new() });
}

#[test]
fn reads_what_upstream_wrote() {
    // From the documentation of the safetensors crate, as F32.
    let bytes =
        b"@\x00\x00\x00\x00\x00\x00\x00{\"test\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}    \
        \x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40";
    let source = MemorySource::new("upstream", bytes.to_vec());
    let header = block_on(read_header(&source)).expect("a valid file");
    let tensor = block_on(read_tensor(&source, "test", &header.tensors["test"])).expect("a valid tensor");
    assert_eq!(tensor, HostTensor { shape: vec![2, 2], data: vec![1.0, 2.0, 3.0, 4.0] });
}

#[test]
fn fixtures_parse() {
    let folder = repository().join("tests/fixtures");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of fixtures") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "safetensors") {
            let source = wgvae::files::FileSource::open(&path).expect("a fixture");
            let header = block_on(read_header(&source)).expect("a valid fixture");
            assert!(!header.tensors.is_empty(), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 0, "no fixture in {}", folder.display());
}

#[test]
fn writer_refuses_what_it_cannot_write() {
    let tensor = HostTensor { shape: vec![2], data: vec![1.0, 2.0] };
    let wrong = HostTensor { shape: vec![3], data: vec![1.0, 2.0] };
    assert!(write_safetensors(&[("a", &tensor), ("a", &tensor)]).is_err());
    assert!(write_safetensors(&[("__metadata__", &tensor)]).is_err());
    assert!(write_safetensors(&[("a", &wrong)]).is_err());
}

/// Source that has this many bytes, and always returns three or eight.
struct Liar(u64, usize);

impl ByteSource for Liar {
    fn name(&self) -> &str {
        "liar"
    }
    fn len(&self) -> u64 {
        self.0
    }
    fn read_at(&self, _: u64, _: u64) -> ReadFuture<'_> {
        Box::pin(std::future::ready(Ok(vec![0; self.1])))
    }
}

#[test]
fn survives_a_source_that_lies() {
    for (liar, wanted) in [
        (Liar(1 << 20, 3), "liar: expected 8 bytes at offset 0, found 3 from its source"),
        (Liar(4, 8), "liar: expected 4 bytes at offset 0, found 8 from its source"),
    ] {
        assert_eq!(block_on(read_header(&liar)).unwrap_err().to_string(), wanted);
    }
}

fn tensor() -> impl Strategy<Value = HostTensor> {
    proptest::collection::vec(0_usize..4, 0..4).prop_flat_map(|shape| {
        let elements = shape.iter().product::<usize>();
        proptest::collection::vec(-1e30_f32..1e30, elements)
            .prop_map(move |data| HostTensor { shape: shape.clone(), data })
    })
}

fn tensors() -> impl Strategy<Value = Vec<(String, HostTensor)>> {
    proptest::collection::btree_map("[a-z.\"\\\\\u{e9}]{1,8}", tensor(), 0..5).prop_map(|map| map.into_iter().collect())
}

fn write(tensors: &[(String, HostTensor)]) -> Vec<u8> {
    let borrowed: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    write_safetensors(&borrowed).expect("writable tensors")
}

proptest! {
    #[test]
    fn reads_what_it_writes(tensors in tensors()) {
        let source = MemorySource::new("written", write(&tensors));
        let header = block_on(read_header(&source)).expect("a valid file");
        prop_assert_eq!(header.tensors.len(), tensors.len());
        for (name, tensor) in &tensors {
            let read = block_on(read_tensor(&source, name, &header.tensors[name])).expect("a valid tensor");
            prop_assert_eq!(&read, tensor);
        }
    }

    #[test]
    fn never_panics_on_noise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = block_on(read_header(&MemorySource::new("noise", bytes)));
    }

    #[test]
    fn never_panics_on_damage(
        tensors in tensors(),
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4),
        cut in any::<u16>(),
    ) {
        let mut bytes = write(&tensors);
        for (at, value) in damage {
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        if cut % 2 == 0 {
            bytes.truncate(usize::from(cut) % (bytes.len() + 1));
        }
        let source = MemorySource::new("damaged", bytes);
        if let Ok(header) = block_on(read_header(&source)) {
            for (name, info) in &header.tensors {
                let _ = block_on(read_tensor(&source, name, info));
            }
        }
    }

    #[test]
    fn never_panics_on_odd_headers(
        begin in any::<u64>(),
        end in any::<u64>(),
        shape in proptest::collection::vec(any::<u64>(), 0..4),
        bytes in 0_usize..32,
    ) {
        let header = format!("{{{}}}", entry("a", "F16", &format!("{shape:?}"), begin, end));
        let _ = block_on(read_header(&MemorySource::new("odd", file(&header, bytes))));
    }
}
