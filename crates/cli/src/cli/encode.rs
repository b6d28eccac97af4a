//! `wgvae encode`.

mod clip;

use std::path::PathBuf;

use clap::Args;
use wgvae::config::AutoencoderConfig;
use wgvae::files::{FileSource, LatentScale};
use wgvae::images::Posterior;
use wgvae::{Checkpoint, EncodeOptions, Error, HostTensor, LatentSpace, LoadOptions, Named as _, Result, Size, Vae};
use wgvae_media::clip_files::{ClipName, Pad, images_shape};

use super::folder::files_of;
use super::images::{ImageFile, PICTURES, SizeArgs, Source, Taken};
use super::interrupt::Interrupt;
use super::latents_output::{Encoding, LatentsFormat, LatentsOutput};
use super::output_names::OutputNames;
use super::paths::{NamedPath, check_replaced, model_files};
use super::prepare::{BudgetArgs, DeviceArgs, ElementArgs, load, open_device};
use super::report::Report;
use super::session::Session;
use super::tally::Tally;
use super::{ModelArgs, by_name, in_file, stdio};

#[derive(Debug, Args)]
pub(super) struct EncodeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Pictures (PNG, JPEG, WebP) or floats `[n, 3, h, w]` or `[3, h, w]` of -1 to 1 (.npy,
    /// .safetensors); all of one size, unless --each is given
    ///
    /// A model with opacity takes it from PNG and WebP, and floats with 4 channels. Other pictures
    /// are opaque.
    ///
    /// Use - for a picture, floats or y4m on stdin.
    ///
    /// Or one clip: numbered pictures (frames/%05d.png), .y4m, - for y4m on stdin, floats `[1, 3,
    /// t, h, w]`, or any file that ffmpeg reads, if ffmpeg is on the path.
    ///
    /// A folder: all pictures in it.
    #[arg(long, value_name = "FILE|FOLDER", required = true, num_args = 1..)]
    image: Vec<PathBuf>,
    /// Latents to write: .safetensors (tensor `latents`, or `moments`) or .npy; - writes the
    /// latents of images to stdout
    ///
    /// The shape is `[n, c, h, w]`, for a clip `[1, c, t, h, w]`.
    ///
    /// A folder, or a pattern such as latents/%s.npy: a file for each input file, with its name.
    /// Their sizes may differ.
    #[arg(short, long, value_name = "FILE|FOLDER")]
    output: PathBuf,
    /// Format of the latents on stdout, with -o -, or in a folder [default: safetensors]
    #[arg(long, value_parser = by_name::<LatentsFormat>())]
    format: Option<LatentsFormat>,
    #[command(flatten)]
    size: SizeArgs,
    /// Frames to append until a clip has a frame count that the model takes (1, 5, 9 and so on;
    /// LTX-2: 1, 9, 17): the last frame again, or the last frames backwards. TAEHV's models need
    /// none and do not take mirror, except taeh3, which takes 5, 22, 39 and so on
    #[arg(long, value_parser = by_name::<Pad>())]
    pad: Option<Pad>,
    /// Most frames of latents of a clip whose length is not known beforehand, from a pipe or
    /// through ffmpeg; only HunyuanVideo 1.5 plans memory for them [default: 33, which are 129
    /// frames]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    clip_latents: Option<u32>,
    /// Write one file of latents for each input file instead of one for all: out.npy becomes
    /// out-1.npy and so on
    #[arg(long)]
    each: bool,
    /// Draw a sample from the encoder's distribution instead of taking its mean; the same on every
    /// machine
    #[arg(long)]
    sample: bool,
    /// Seed of the noise; images within a file get different noise
    ///
    /// The first image of every file gets the same noise.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Write the distribution itself: means, then log variances, without the diffusion model's
    /// scale
    ///
    /// The shape is `[n, 2c, h, w]`.
    #[arg(long, conflicts_with_all = ["sample", "unscaled"])]
    moments: bool,
    /// Write the VAE's own latents, without the diffusion model's scaling factor and patches
    #[arg(long)]
    unscaled: bool,
    #[command(flatten)]
    elements: ElementArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// JSON report to write: the adapter, the plan, memory and the GPU time of each stage
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Times to encode every image; the reported `seconds` are the median of all
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// Checks everything that needs no GPU first, then loads the model, encodes, and writes.
pub(super) async fn run(mut args: EncodeArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    stdio::check_report(args.report.as_deref(), &args.output)?;
    let from_folder = args.open_folders()?;
    args.size.check_tensor(&args.image)?;
    if let Some(name) = args.clip().await? {
        return clip::run(&args, &name, &interrupt).await;
    }
    args.check_images()?;
    let names = args.output_names(from_folder)?;
    args.each |= names.is_some();
    let output = match &names {
        Some(names) => LatentsOutput::named(names.assign_one_each(&args.image)?)?,
        None => LatentsOutput::new(&args.output, args.format, if args.each { args.image.len() } else { 1 })?,
    };
    let checkpoint = args.model.open().await?;
    args.check_paths(&checkpoint, &output.names)?;
    checkpoint.check_encoder()?;
    if !args.moments {
        checkpoint.check_space(args.space())?;
    }
    let config = checkpoint.config();
    let files = args.open_images(Taken::by(config, config.image_step(args.space()))).await?;
    let images: Vec<Source> = files.iter().map(ImageFile::source).collect();
    if let Some(names) = &names {
        names.create_folder()?;
        output.check_writable()?;
    }

    let device = open_device(&args.device, &args.elements).await?;
    let options = args.options();
    let loaded = LoadOptions::for_request(&options.request(images[0].size), args.elements.precision);
    let mut vae = load(&device, &checkpoint, loaded).await?;
    args.check_plans(&vae, &images, &options)?;
    let total = images.iter().map(|image| u64::from(image.count) * u64::from(args.repeat)).sum();
    let session = Session::new("encode", &device, &interrupt, Some(total));
    let facts = args.facts(&checkpoint);
    let mut work = Work { args: &args, output: &output, facts, vae: &mut vae, options, session };
    let mut written = match names {
        Some(_) => work.one_by_one(files, &interrupt).await.map(|()| Vec::new())?,
        None => work.together(files).await?,
    };
    let session = work.session;
    let report = Report::of_encode(&device, &mut vae, &images, &options, session, &output.names).await?;
    written.extend(args.report.iter().map(|path| (path.clone(), report.to_bytes())));
    interrupt.write_all(&written)?;
    Ok(report.show(args.json, stdio::is_meant(&args.output)))
}

impl EncodeArgs {
    /// Returns the space of the output. Moments are in the VAE's own.
    fn space(&self) -> LatentSpace {
        LatentSpace::from_unscaled(self.unscaled || self.moments)
    }

    /// Fails for options that only clips have.
    fn check_images(&self) -> Result<()> {
        let given = [("--pad", self.pad.is_some()), ("--clip-latents", self.clip_latents.is_some())];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => Err(Error::input(*flag, "a clip as the input", "images")),
        }
    }

    /// Replaces each folder of `--image` by the pictures in it. Returns true if there was one.
    fn open_folders(&mut self) -> Result<bool> {
        let (mut files, mut found) = (Vec::new(), false);
        for path in &self.image {
            if path.is_dir() {
                files.extend(files_of("--image", path, PICTURES)?);
                found = true;
            } else {
                files.push(path.clone());
            }
        }
        self.image = files;
        Ok(found)
    }

    /// Returns the rule for the names of the output files, if `--output` asks for one for each
    /// input file.
    fn output_names(&self, from_folder: bool) -> Result<Option<OutputNames>> {
        let ending = LatentsFormat::Safetensors.name();
        OutputNames::of(&self.output, (self.format.map(LatentsFormat::name), ending), from_folder)
    }

    /// Returns the clip that `--image` names, if any: by its file name, or by the shape of an
    /// array.
    async fn clip(&self) -> Result<Option<ClipName>> {
        let from_stdin = self.image.iter().filter(|path| stdio::is_meant(path)).count();
        if from_stdin > 1 {
            return Err(Error::input(
                "--image",
                "- at most once, because stdin can be read only once",
                format!("it {from_stdin} times"),
            ));
        }
        for path in &self.image {
            let Some(name) = ClipName::of_input(path)? else { continue };
            if name == ClipName::Standard && !stdio::has_y4m()? {
                continue;
            }
            if name.is_only_clip() || self.is_clip(path).await {
                let found = || format!("{} and {} more", path.display(), self.image.len() - 1);
                return if self.image.len() == 1 {
                    Ok(Some(name))
                } else {
                    Err(Error::input("--image", "one clip, or images", found()))
                };
            }
        }
        Ok(None)
    }

    /// Returns true if the file at `path` holds an array with the axes of a clip, also of one
    /// frame.
    async fn is_clip(&self, path: &PathBuf) -> bool {
        let Ok(source) = FileSource::open(path) else { return false };
        images_shape(&source, self.size.tensor()).await.is_ok_and(|shape| shape.len() == 5)
    }

    fn options(&self) -> EncodeOptions {
        self.budget.encode(self.report.is_some())
    }

    /// Fails if an output file would replace an input or another output.
    fn check_paths(&self, checkpoint: &Checkpoint, names: &[PathBuf]) -> Result<()> {
        let images = self.image.iter().map(|path| ("--image", path.as_path()));
        let inputs: Vec<NamedPath<'_>> = images.chain(model_files(checkpoint)).collect();
        let mut outputs: Vec<NamedPath<'_>> = names.iter().map(|name| ("--output", name.as_path())).collect();
        outputs.extend(self.report.iter().map(|path| ("--report", path.as_path())));
        check_replaced(&inputs, &outputs)
    }

    /// Opens all files, for a model that takes `taken`. Images that go into one output file must
    /// have one size.
    async fn open_images(&self, taken: Taken) -> Result<Vec<ImageFile>> {
        let mut files: Vec<ImageFile> = Vec::new();
        for path in &self.image {
            files.push(self.size.open(path, taken).await?);
        }
        let images: Vec<Source> = files.iter().map(ImageFile::source).collect();
        let other = images.iter().find(|image| !self.each && image.size != images[0].size);
        let described = |image: &Source| format!("{} of {}", image.file.display(), image.size);
        match other {
            None => Ok(files),
            Some(other) => Err(Error::input(
                "--image",
                "images of one size for one file of latents (or use --each or --resize)",
                format!("{} and {}", described(&images[0]), described(other)),
            )),
        }
    }

    /// Plans every size, so that an image that is too large fails before anything is encoded. Also
    /// fails if the model cannot give the output that was asked for.
    fn check_plans(&self, vae: &Vae, images: &[Source], options: &EncodeOptions) -> Result<()> {
        let mut known: Vec<Size> = Vec::new();
        for Source { file, size, .. } in images {
            if known.contains(size) {
                continue;
            }
            known.push(*size);
            vae.planner().plan(&options.request(*size)).map_err(|error| in_file(error, file.display()))?;
        }
        self.check_distribution(vae.config())
    }

    /// Fails for flags that ask for a distribution, if the encoder of `config` gives none.
    fn check_distribution(&self, config: &AutoencoderConfig) -> Result<()> {
        if config.has_distribution() || !(self.sample || self.moments) {
            return Ok(());
        }
        let flag = if self.sample { "--sample" } else { "--moments" };
        let model = self.model.model.display();
        let found = format!("{model}, whose encoder gives the latents themselves");
        Err(Error::input(flag, "a model whose encoder gives a distribution", found))
    }

    /// Groups the input files by output file.
    fn groups(&self, files: Vec<ImageFile>) -> Vec<Vec<ImageFile>> {
        if self.each { files.into_iter().map(|file| vec![file]).collect() } else { vec![files] }
    }

    /// Converts the encoder's output `[c, h, w]` for image `index` of a file to the output asked
    /// for.
    fn wanted(&self, vae: &Vae, moments: HostTensor, index: u32) -> Result<HostTensor> {
        if self.moments {
            return Ok(moments);
        }
        let posterior = Posterior::new(moments, vae.config().latent_channels)?;
        let latents = if self.sample { posterior.sample(self.seed, index)? } else { posterior.into_mode() };
        vae.encoded_latents(latents, self.space())
    }

    /// Returns the metadata of an output file.
    fn facts(&self, checkpoint: &Checkpoint) -> Vec<(&'static str, String)> {
        let mut facts = vec![("producer", concat!("wgvae ", env!("CARGO_PKG_VERSION")).to_owned())];
        facts.extend(self.model.family.clone().map(|family| ("family", family)));
        if let LatentScale::Known { from } = checkpoint.scale() {
            facts.push(("scale", format!("by {from}")));
        }
        let posterior = match (self.moments, self.sample) {
            (true, _) => return facts,
            (false, true) => "sample",
            (false, false) => "mode",
        };
        facts.push(("posterior", posterior.to_owned()));
        facts.extend(self.sample.then(|| ("seed", self.seed.to_string())));
        facts
    }
}

/// State of a running encode of images.
struct Work<'a, 'v> {
    args: &'a EncodeArgs,
    output: &'a LatentsOutput,
    /// Metadata of the output files.
    facts: Vec<(&'static str, String)>,
    vae: &'v mut Vae,
    options: EncodeOptions,
    session: Session<'a>,
}

impl Work<'_, '_> {
    /// Encodes all `files`. Returns the output files, to be written when everything is done.
    async fn together(&mut self, files: Vec<ImageFile>) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut written = Vec::new();
        for (name, group) in self.output.names.iter().zip(self.args.groups(files)) {
            written.push((name.clone(), self.content(group).await?));
        }
        Ok(written)
    }

    /// Encodes each of `files`, and writes its output before it goes on.
    async fn one_by_one(&mut self, files: Vec<ImageFile>, interrupt: &Interrupt) -> Result<()> {
        let mut tally = Tally::begin(&self.args.output, files.len());
        for (name, file) in self.output.names.iter().zip(files) {
            let Source { file: input, count, .. } = file.source();
            let content = self.content(vec![file]).await;
            let written = content.and_then(|content| interrupt.write_all(&[(name.clone(), content)]));
            written.inspect_err(|_| tally.stopped_at(&input))?;
            tally.add(count as usize);
        }
        tally.finish();
        Ok(())
    }

    /// Returns the content of the output file for the images of `files`. Pictures are read one at a
    /// time.
    async fn content(&mut self, files: Vec<ImageFile>) -> Result<Vec<u8>> {
        let (args, mut stack) = (self.args, Stack::default());
        for file in files {
            let images = file.read()?;
            for index in 0..images.count() {
                let moments = self.session.encode(self.vae, &images, index, &self.options, args.repeat).await?;
                stack.add(args.wanted(self.vae, moments, stack.count)?);
            }
        }
        let tensor = stack.into_tensor();
        let encoding = if args.moments { Encoding::Moments(tensor) } else { Encoding::Latents(tensor, args.space()) };
        self.output.bytes(&encoding, &self.facts)
    }
}

/// Tensors of one shape, stacked.
#[derive(Debug, Default)]
struct Stack {
    count: u32,
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Stack {
    fn add(&mut self, tensor: HostTensor) {
        self.count += 1;
        self.shape = tensor.shape;
        self.data.extend(tensor.data);
    }

    /// Returns the stack as one tensor `[n, ...]`.
    fn into_tensor(self) -> HostTensor {
        HostTensor { shape: [&[self.count as usize], self.shape.as_slice()].concat(), data: self.data }
    }
}
