//! `wgvae preview`, and `wgvae decode --preview`.

use test_kit::formula;

use crate::tool::{Entry, Folder};

/// Makes a folder with latents of two images for SDXL.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[2, 4, 12, 20])));
    folder
}

#[test]
fn previews_need_neither_weights_nor_an_adapter() {
    let folder = folder();
    let preview = ["preview", "--family", "sdxl", "--latents", "latents.safetensors"];
    let said = folder.run_without_adapter(&[&preview[..], &["-o", "p.png"]].concat()).ok().stdout;
    assert_eq!(said.lines().count(), 2, "{said}");
    for name in ["p-1.png", "p-2.png"] {
        let picture = image::load_from_memory(&folder.read(name)).unwrap();
        assert_eq!((picture.width(), picture.height()), (20, 12), "{name}");
    }
    folder.run_without_adapter(&[&preview[..], &["--max-side", "7", "-o", "small.webp"]].concat()).ok();
    let picture = image::load_from_memory(&folder.read("small-2.webp")).unwrap();
    assert_eq!((picture.width(), picture.height()), (7, 4));
}

#[test]
fn wrong_previews_write_nothing() {
    let folder = folder();
    let before = folder.names();
    let fails = |args: &[&str], words: &[&str]| {
        let all = [&["preview", "--latents", "latents.safetensors"], args].concat();
        folder.run_without_adapter(&all).failed("a wrong preview", 1, words);
    };
    fails(&["--family", "sdxl", "-o", "p.npy"], &["npy"]);
    fails(&["--family", "flux1", "-o", "p.png"], &["latents: expected 16 channels", "4 channels, as sd15"]);
    fails(&["--family", "seedvr2", "-o", "p.png"], &["family to preview", "sd15, sd21, taesd"]);
    fails(&["--family", "sdxl", "-o", "latents.safetensors"], &["safetensors"]);
    assert_eq!(folder.names(), before);
}

#[test]
fn a_decode_makes_a_preview() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 8, 9, 10])));
    folder.decode(&["--preview", "12", "-o", "p.png"]).ok();
    let picture = image::load_from_memory(&folder.read("p.png")).unwrap();
    assert_eq!((picture.width(), picture.height()), (10, 10));
    let words = ["--preview: expected at least 2, for one latent, found 1"];
    folder.decode(&["--preview", "1", "-o", "q.png"]).failed("no room for a latent", 1, &words);
}
