//! Dot products per instruction set, element type and number of queries, in the caches and beyond, with
//! the plain read of the same bytes as a row beside them. `cargo bench --bench kernels`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use half::f16;
use memorank::kernel::{Isa, Kernel, Picks, Queries, Rows};
use memorank::yardstick::read_bytes;
use memorank_data_gen::{Config, Stream};
use std::hint::black_box;

/// In the first-level cache of most machines, in the second, and beyond all.
const SIZES: [usize; 3] = [32, 1_000, 200_000];

fn kernels(c: &mut Criterion) {
    let dim = 384;
    let largest = SIZES[SIZES.len() - 1];
    let data = Stream::new(Config {
        memories: largest,
        dim,
        seed: 1,
    })
    .expect("in range");
    let f32s: Vec<f32> = data
        .blocks()
        .flat_map(|block| block.embeddings().to_vec())
        .collect();
    let f16s: Vec<f16> = f32s.iter().map(|&x| f16::from_f32(x)).collect();
    for memories in SIZES {
        for many in [1, 16] {
            let mut queries = Queries::new(dim.try_into().expect("not 0"));
            for i in 0..many {
                queries
                    .push_unit(&data.query(i))
                    .expect("generated queries are sound");
            }
            let elements = memories * dim;
            for rows in [Rows::F32(&f32s[..elements]), Rows::F16(&f16s[..elements])] {
                group(c, rows, memories, &queries);
            }
        }
    }
}

fn group(c: &mut Criterion, rows: Rows<'_>, memories: usize, queries: &Queries) {
    let bytes: &[u8] = match rows {
        Rows::F32(elements) => bytemuck::cast_slice(elements),
        Rows::F16(elements) => bytemuck::cast_slice(elements),
    };
    let (dtype, many) = (rows.dtype(), queries.len());
    let mut group = c.benchmark_group(format!("{memories} x 384 {dtype}, {many} queries"));
    group
        .throughput(Throughput::Bytes(bytes.len() as u64))
        .sample_size(20);
    let best = Kernel::best();
    group.bench_function("plain read", |b| {
        b.iter(|| read_bytes(black_box(bytes), best))
    });

    let dots = |kernel: Kernel, out: &mut [f32]| {
        kernel.dots(
            black_box(rows),
            Picks::Range(0..memories),
            black_box(queries),
            out,
        );
    };
    let scalar = Kernel::new(Isa::Scalar).expect("every machine has it");
    let mut expected = vec![0.0; memories * many];
    dots(scalar, &mut expected);
    let mut out = vec![0.0; memories * many];
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        let Ok(kernel) = Kernel::new(isa) else {
            println!("{isa}: not on this machine");
            continue;
        };
        dots(kernel, &mut out);
        let same = out
            .iter()
            .zip(&expected)
            .all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{isa} has other bits than scalar");
        group.bench_with_input(BenchmarkId::new("dots", isa), &kernel, |b, &kernel| {
            b.iter(|| dots(kernel, &mut out));
        });
    }
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
