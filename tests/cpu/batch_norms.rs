//! Batch norms of DC-AE, which become a part of the convolution before them.

use std::collections::BTreeMap;

use pollster::block_on;
use test_kit::formula;
use test_kit::golden::Golden;
use test_kit::written::as_written;
use wgvae::HostTensor;
use wgvae::model::networks::encoder_tensors;

use crate::checkpoint::open_memory;

/// Returns a DC-AE whose decoder has a batch norm, and its config.json.
fn dc_ae() -> (BTreeMap<String, HostTensor>, String) {
    let golden = Golden::open("toy_dc_ae_batch");
    let mut tensors = formula::decoder(&golden.config);
    tensors.extend(formula::weights(&encoder_tensors(&golden.config)));
    (as_written(&golden.config, tensors), golden.metadata["config"].clone())
}

#[test]
fn a_batch_norm_becomes_a_part_of_the_convolution_before_it() {
    let (tensors, config) = dc_ae();
    let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
    let block = "decoder.up_blocks.1.1";
    let read = |name: &str, shape: &[u64]| block_on(checkpoint.read_f32(&format!("{block}.{name}"), shape)).unwrap();
    let [weight, bias, mean, var] =
        ["weight", "bias", "running_mean", "running_var"].map(|part| &tensors[&format!("{block}.norm.{part}")].data);
    let (filter, summands) = (read("conv2.weight", &[32, 32, 3, 3]), read("conv2.bias", &[32]));
    for channel in 0..32 {
        let factor = weight[channel] / (var[channel] + 1e-5).sqrt();
        let wanted = bias[channel] - mean[channel] * factor;
        assert!((summands[channel] - wanted).abs() < 1e-6, "{channel}: {} for {wanted}", summands[channel]);
        let (index, written) = (channel * 288 + 7, &tensors[&format!("{block}.conv2.weight")].data);
        assert!((filter[index] - written[index] * factor).abs() < 1e-6, "{channel}");
    }
    // The norm's factors and summands count once, as in torch, and so do its statistics.
    let count: usize = tensors.values().map(|tensor| tensor.data.len()).sum();
    assert_eq!(checkpoint.parameters().total, count as u64);
}

#[test]
fn bad_batch_norms_are_refused_by_name() {
    let refusal = |change: &dyn Fn(&mut BTreeMap<String, HostTensor>)| {
        let (mut tensors, config) = dc_ae();
        change(&mut tensors);
        let checkpoint = open_memory(&tensors, Some(&config)).expect("a VAE");
        let read = |(name, shape): (&str, &[u64])| block_on(checkpoint.read_f32(name, shape)).map(|_| ());
        let block: [(&str, &[u64]); 2] =
            [("decoder.up_blocks.1.1.conv2.weight", &[32, 32, 3, 3]), ("decoder.up_blocks.1.1.conv2.bias", &[32])];
        let refused = checkpoint.check_decoder().err().into_iter();
        refused.chain(block.into_iter().filter_map(|wanted| read(wanted).err())).next().expect("bad").to_string()
    };
    for part in ["weight", "bias", "running_mean", "running_var"] {
        let name = format!("decoder.up_blocks.1.1.norm.{part}");
        let text = refusal(&|tensors| drop(tensors.remove(&name)));
        assert!(text.contains(&format!("1 missing tensor(s), first \"{name}\"")), "{text}");
        let text = refusal(&|tensors| drop(tensors.insert(name.clone(), formula::weight(&name, &[31]))));
        assert_eq!(text, format!("tensor \"{name}\": expected shape [32], found [31]"));
    }
    let text = refusal(&|tensors| tensors.retain(|name, _| !name.starts_with("decoder.up_blocks.1.1.norm.")));
    assert!(text.contains("4 missing tensor(s), first \"decoder.up_blocks.1.1.norm.bias\""), "{text}");
    let name = "decoder.up_blocks.1.1.norm.running_var";
    let text = refusal(&|tensors| tensors.get_mut(name).unwrap().data[3] = -1.0);
    assert_eq!(text, format!("tensor \"{name}\": expected variances of 0 or more, found -1 at element 3"));
}

#[test]
fn a_config_of_other_norms_is_refused() {
    let (tensors, config) = dc_ae();
    let other = config.replace("batch_norm", "rms_norm");
    assert_ne!(other, config);
    let text = open_memory(&tensors, Some(&other)).expect_err("another network").to_string();
    assert!(text.contains("decoder_norm_types"), "{text}");
}
