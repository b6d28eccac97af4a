//! The .npy reader and writer: files of `NumPy`, every kind of bad file, then random ones.

use pollster::block_on;
use proptest::prelude::*;
use wgvae::HostTensor;
use wgvae::files::MemorySource;
use wgvae::internals::npy::{read_npy, write_npy};

/// Returns a file of version 1 with this header and data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).expect("a short header").to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), data].concat()
}

fn header(descr: &str, fortran_order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n")
}

fn read(bytes: Vec<u8>) -> wgvae::Result<HostTensor> {
    block_on(read_npy(&MemorySource::new("a.npy", bytes)))
}

#[test]
fn reads_arrays() {
    let one_two = [0, 0, 128, 63, 0, 0, 0, 64];
    type Case = (&'static str, Vec<u8>, &'static [usize], &'static [f32]);
    let cases: [Case; 8] = [
        ("float32", file(&header("'<f4'", "False", "(1, 2)"), &one_two), &[1, 2], &[1.0, 2.0]),
        ("float16", file(&header("'<f2'", "False", "(2,)"), &[0, 0x3c, 0, 0xc0]), &[2], &[1.0, -2.0]),
        ("scalar", file(&header("'<f4'", "False", "()"), &one_two[..4]), &[], &[1.0]),
        ("no elements", file(&header("'<f4'", "False", "(0, 3)"), &[]), &[0, 3], &[]),
        ("Python 2", file(&header("'<f4'", "False", "(2L,)"), &one_two), &[2], &[1.0, 2.0]),
        (
            "double quotes, no commas at the ends",
            file(r#"{"descr":"<f4","fortran_order":False,"shape":(1,2)}"#, &one_two),
            &[1, 2],
            &[1.0, 2.0],
        ),
        (
            "other order of keys",
            file("{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}", &one_two),
            &[2],
            &[1.0, 2.0],
        ),
        (
            "version 3",
            [
                b"\x93NUMPY\x03\x00\x39\x00\x00\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} \n"
                    .as_slice(),
                &one_two,
            ]
            .concat(),
            &[2],
            &[1.0, 2.0],
        ),
    ];
    for (case, bytes, shape, data) in cases {
        let tensor = read(bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(tensor, HostTensor { shape: shape.to_vec(), data: data.to_vec() }, "{case}");
    }
}

#[test]
fn refuses_bad_files() {
    let plain = header("'<f4'", "False", "(2,)");
    let cases: [(&str, Vec<u8>, &str); 24] = [
        ("empty", Vec::new(), "not a .npy file"),
        ("something else", b"PK\x03\x04".to_vec(), "not a .npy file"),
        ("magic only", b"\x93NUMPY".to_vec(), "truncated within its first bytes"),
        ("no header length", b"\x93NUMPY\x01\x00\x10".to_vec(), "truncated within its first bytes"),
        ("version 4", b"\x93NUMPY\x04\x00\x10\x00\x00\x00".to_vec(), "version 4 of the .npy format is not supported"),
        ("version 0", b"\x93NUMPY\x00\x00\x10\x00\x00\x00".to_vec(), "version 0"),
        ("header cut off", file(&plain, &[])[..40].to_vec(), "truncated: the header ends at byte"),
        ("header of 4 GiB", b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "its header would have 4294967295 bytes"),
        (
            "header not text",
            [b"\x93NUMPY\x01\x00\x02\x00".as_slice(), &[0xff, 0xfe]].concat(),
            "its header is not text",
        ),
        ("not a dict", file("[1, 2]", &[]), "does not describe an array"),
        ("a key is missing", file("{'descr': '<f4', 'shape': (2,)}", &[0; 8]), "does not describe an array"),
        (
            "an unknown key",
            file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", &[0; 8]),
            "does not describe an array",
        ),
        ("nested brackets", file(&format!("{{'descr': {}", "[".repeat(9000)), &[]), "does not describe an array"),
        ("a structured type", file(&header("[('a', '<f4')]", "False", "(2,)"), &[0; 8]), "a structured array"),
        (
            "doubles",
            file(&header("'<f8'", "False", "(2,)"), &[0; 16]),
            "elements of type '<f8'; only float32 and float16",
        ),
        ("integers", file(&header("'<i4'", "False", "(2,)"), &[0; 8]), "elements of type '<i4'"),
        ("objects", file(&header("'|O'", "False", "(2,)"), &[0; 8]), "elements of type '|O'"),
        ("big-endian", file(&header("'>f4'", "False", "(2,)"), &[0; 8]), "elements of type '>f4'"),
        ("Fortran order", file(&header("'<f4'", "True", "(2, 3)"), &[0; 24]), "Fortran order"),
        ("negative extent", file(&header("'<f4'", "False", "(-2,)"), &[0; 8]), "does not describe an array"),
        (
            "extent beyond 64 bits",
            file(&header("'<f4'", "False", "(99999999999999999999,)"), &[0; 8]),
            "does not describe an array",
        ),
        (
            "product beyond 64 bits",
            file(&header("'<f4'", "False", "(4294967296, 4294967296)"), &[0; 8]),
            "more bytes than 64 bits",
        ),
        ("data cut off", file(&plain, &[0; 7]), "an array of shape [2] and type F32 has 8 bytes, but 7 follow"),
        ("data left over", file(&plain, &[0; 9]), "has 8 bytes, but 9 follow"),
    ];
    for (case, bytes, wanted) in cases {
        let text = read(bytes).expect_err(case).to_string();
        assert!(text.starts_with("a.npy: ") && text.contains(wanted), "{case}: {text}");
    }
}

#[test]
fn writes_what_numpy_writes() {
    let tensor = HostTensor { shape: vec![1, 2], data: vec![1.0, 2.0] };
    let mut expected = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }".to_vec();
    expected.resize(127, b' ');
    expected.push(b'\n');
    expected.extend_from_slice(&[0, 0, 128, 63, 0, 0, 0, 64]);
    assert_eq!(write_npy(&tensor), expected);
}

#[test]
fn very_many_axes_make_a_version_2_file_that_is_refused_politely() {
    let tensor = HostTensor { shape: vec![1; 40_000], data: vec![1.0] };
    let text = read(write_npy(&tensor)).expect_err("too long a header").to_string();
    assert!(text.contains("its header would have"), "{text}");
}

proptest! {
    #[test]
    fn reads_what_it_writes(shape in proptest::collection::vec(0_usize..4, 0..5), seed in any::<f32>()) {
        let elements = shape.iter().product::<usize>();
        let value = |index| f32::from_bits(seed.to_bits() ^ u32::try_from(index).expect("few"));
        let data: Vec<f32> = (0..elements).map(value).collect();
        let tensor = HostTensor { shape, data };
        let read = read(write_npy(&tensor)).expect("a valid file");
        prop_assert_eq!(&read.shape, &tensor.shape);
        let bits = |tensor: &HostTensor| tensor.data.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&read), bits(&tensor));
    }

    #[test]
    fn never_panics_on_noise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read([b"\x93NUMPY\x01\x00".as_slice(), &bytes].concat());
        let _ = read(bytes);
    }

    #[test]
    fn never_panics_on_noise_in_the_header(text in "[\\x20-\\x7e\u{e9}']{0,60}") {
        let _ = read(file(&text, &[]));
        let _ = read(file(&format!("{{'descr': '<f4', 'shape': {text}}}"), &[]));
    }

    #[test]
    fn never_panics_on_damage(
        damage in proptest::collection::vec((any::<u8>(), any::<u8>()), 1..4),
        cut in any::<u8>(),
    ) {
        let mut bytes = write_npy(&HostTensor { shape: vec![1, 2, 3], data: vec![1.0; 6] });
        for (at, value) in damage {
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        if cut < 100 {
            bytes.truncate(usize::from(cut));
        }
        let _ = read(bytes);
    }
}
