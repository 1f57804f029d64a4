//! `memorank create`: a new store without memories.

use crate::failure::Failure;
use crate::import::DtypeName;
use crate::output::{Output, escaped};
use memorank::store::{CreateOptions, Store};
use memorank::stream::HashingEmbedder;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The folder of the new store; it must not exist.
    store: PathBuf,
    /// The embedding model's name, kept in the store. That of the built-in embedder lets `add` and `query` embed
    /// texts by themselves: it matches words, not meaning.
    #[arg(long, default_value = HashingEmbedder::MODEL)]
    model: String,
    /// Elements per embedding.
    #[arg(long, default_value = "512")]
    dim: NonZeroUsize,
    /// How to store embeddings.
    #[arg(long, value_enum, default_value = "f16")]
    dtype: DtypeName,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    store: String,
    model: &'a str,
    dim: usize,
    dtype: &'static str,
}

pub fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let dtype = args.dtype.into();
    let options = CreateOptions {
        dim: args.dim,
        dtype,
        model: Some(args.model.clone()),
    };
    Store::create(&args.store, &options)?.close()?;
    let document = Document {
        schema: "memorank.create/1",
        store: args.store.display().to_string(),
        model: &args.model,
        dim: args.dim.get(),
        dtype: dtype.name(),
    };
    if out.is_json() {
        return out.document(&document);
    }
    let (store, model) = (escaped(&document.store), escaped(document.model));
    let Document { dim, dtype, .. } = document;
    out.line(format_args!(
        "{store}: no memories, {dim} x {dtype}, embedded by {model}"
    ))
}
