//! Lines: any `.jsonl` file beside a matrix of one or two rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memorank::import::{Options, TimeUnit, npy};
use memorank_fuzz::import;

fuzz_target!(|bytes: &[u8]| {
    let Some((&rows, lines)) = bytes.split_first() else {
        return;
    };
    let rows = 1 + usize::from(rows % 2);
    let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, 1), }}");
    let padded = format!("{dictionary:<117}\n");
    let mut matrix = b"\x93NUMPY\x01\x00v\x00".to_vec();
    matrix.extend(padded.bytes());
    (0..rows).for_each(|_| matrix.extend(1.0_f32.to_le_bytes()));
    let files: [(&str, &[u8]); 2] = [("m.npy", &matrix), ("m.jsonl", lines)];
    let options = Options {
        time_unit: Some(TimeUnit::Seconds),
        ..Options::default()
    };
    import(&files, |folder, store| {
        npy(
            &folder.join("m.npy"),
            &folder.join("m.jsonl"),
            store,
            &options,
            &mut |_, _| (),
        )
        .err()
    });
});
