//! Checks the inputs in `fuzz/corpus` with the targets of the fuzzer.

#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::fs;
use std::path::Path;

#[test]
fn each_input_of_the_corpus_passes_the_checks_of_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, check) in targets::ALL {
        let mut inputs = 0;
        for input in fs::read_dir(corpus.join(name)).unwrap() {
            let input = input.unwrap().path();
            // A failed test shows its output, so the last line names the input.
            println!("{}", input.display());
            check(&fs::read(&input).unwrap());
            inputs += 1;
        }
        assert!(inputs > 5, "{name}: {inputs}");
    }
}
