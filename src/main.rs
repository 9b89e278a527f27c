//! The `urlseen` command: a thin shell around the library.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    give_large_memory_back();
    cli::run()
}

/// Has memory of a megabyte and more go back to the system as soon as it is dropped. Once the C
/// library has seen such sizes come and go, it would keep them: several times what is in use, where
/// items are large. Of what is smaller, it keeps for the next batch what it would give back else.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn give_large_memory_back() {
    // SAFETY: it sets numbers of the allocator, and no other thread is there yet. Where one is
    // refused, it stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 16 << 20);
    }
}
