//! PSNR and SSIM against scikit-image.

use test_kit::fixture::Fixture;
use wgvae::Size;
use wgvae::quality::{psnr, squared_differences, ssim};

#[test]
fn psnr_and_ssim_are_those_of_scikit_image() {
    let fixture = Fixture::open("similarity");
    let pairs: Vec<&str> = fixture.names().filter_map(|name| name.strip_suffix(".a")).collect();
    assert_eq!(pairs.len(), 8);
    for pair in pairs {
        let (size, left) = fixture.picture(&format!("{pair}.a"));
        let (_, right) = fixture.picture(&format!("{pair}.b"));
        let wanted = |what: &str| fixture.metadata()[&format!("{pair}.{what}")].parse::<f64>().unwrap();
        let found = psnr(squared_differences(&left, &right), left.len());
        assert!(found == wanted("psnr") || (found - wanted("psnr")).abs() < 1e-9, "{pair}: PSNR {found}");
        let found = ssim(&left, &right, size).unwrap();
        assert!((found - wanted("ssim")).abs() < 1e-9, "{pair}: SSIM {found}, not {}", wanted("ssim"));
    }
}

#[test]
fn a_picture_smaller_than_the_window_has_no_ssim() {
    for (width, height) in [(10, 50), (50, 10), (1, 1)] {
        let picture = vec![7; width as usize * height as usize * 3];
        assert_eq!(ssim(&picture, &picture, Size { width, height }), None);
    }
    let picture = vec![7; 11 * 11 * 3];
    assert_eq!(ssim(&picture, &picture, Size { width: 11, height: 11 }), Some(1.0));
}
