//! Pictures that promise more pixels than the file has.

/// Returns a PNG that ends where its pixels would begin. The header's checksum is right.
pub fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend([width, height].iter().flat_map(|side| side.to_be_bytes()));
    header.extend([8, 2, 0, 0, 0]);
    let crc = header.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    });
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0d", &header[..], &(!crc).to_be_bytes(), b"\0\x10\0\0IDAT"].concat()
}
