//! `wgvae selftest`. Its test of a GPU takes longest of all. Tests start in the order of their
//! names, so this file's name makes it the first: the last would run alone while other cores wait.

use crate::tool::Folder;

#[test]
fn every_set_of_kernels_is_right_here() {
    let folder = Folder::new();
    let found = folder.run(&["selftest", "--device", "gpu", "--json"]).json();
    assert_eq!(found["right"], true, "{found}");
    let rows = found["rows"].as_array().unwrap();
    let adapter = &folder.run(&["adapters", "--json"]).json()[0];
    let halves = adapter["limits"]["shader_f16"] == true;
    let units = if adapter["matrix_units"].is_null() { 0 } else { 4 };
    assert_eq!(rows.len(), units + if halves { 16 } else { 8 }, "{found}");
    assert_eq!(rows.iter().filter(|row| row["elements"] == "fast_on_units").count(), units, "{found}");
    for row in rows {
        let (error, most) = (row["error"].as_f64().unwrap(), row["most"].as_f64().unwrap());
        assert!(error > 0.0 && error <= most, "{row}");
        assert_eq!(row["same_bits"], true, "{row}");
    }
}

#[test]
fn the_cores_are_right_with_all_threads_and_with_one() {
    let folder = Folder::new();
    let said = folder.run_without_adapter(&["selftest"]).ok().stdout;
    assert!(said.starts_with("CPU (") && said.contains("all threads, then with one"), "{said}");
    assert_eq!(said.matches(" right ").count(), 4, "{said}");
    assert!(said.ends_with("all right\n"), "{said}");
    let found = folder.run(&["selftest", "--device", "cpu", "--json"]).json();
    let rows = found["rows"].as_array().unwrap();
    assert_eq!((found["right"].as_bool(), rows.len()), (Some(true), 4), "{found}");
    for (row, elements) in rows.iter().zip(["f32", "f32", "packed_f16", "packed_f16"]) {
        assert_eq!((row["elements"].as_str(), row["same_bits"].as_bool()), (Some(elements), Some(true)), "{row}");
        assert!(row["error"].as_f64() < row["most"].as_f64(), "{row}");
    }
}
