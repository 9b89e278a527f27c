//! Source files of the project, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// Text file of the project.
pub(crate) struct Source {
    /// Path relative to the repository, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns the folder of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every Rust file: `crates` first, each folder in the order of names.
pub(crate) fn rust_files() -> Vec<Source> {
    let mut files = files_below(&["crates", "src", "tests", "benches", "examples"]);
    files.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    files.iter().map(|path| read(path)).collect()
}

/// Returns every script, a file that names its interpreter in its first line.
pub(crate) fn scripts() -> Vec<Source> {
    let files = files_below(&["scripts", ".ci"]);
    let files = files.iter().map(|path| read(path));
    files.filter(|file| file.text.starts_with("#!")).collect()
}

/// Reads every Markdown page.
pub(crate) fn pages() -> Vec<Source> {
    let files = files_below(&[""]);
    let pages = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.map(|path| read(path)).collect()
}

/// Returns the files that may name pages: sources, scripts and config.toml.
pub(crate) fn texts() -> Vec<Source> {
    let mut files = files_below(&["src", "tests/it", "benches", "scripts", "integrations"]);
    files.push(root().join("config.toml"));
    let endings = ["", "rs", "py", "lua", "toml"];
    files.retain(|path| {
        endings.contains(&path.extension().unwrap_or_default().to_str().unwrap_or_default())
    });
    files.iter().map(|path| read(path)).collect()
}

fn files_below(folders: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root().join(folder), &mut files);
    }
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    let mut paths = entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if !is_generated(&path) {
                collect(&path, files);
            }
        } else {
            files.push(path);
        }
    }
}

/// Returns true for folders of built or installed files: `.git`, `.venv`, `target`, and Python's
/// caches.
fn is_generated(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    matches!(&*name, "__pycache__" | "target" | "node_modules") || name.starts_with('.')
}

fn read(path: &Path) -> Source {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let relative = path.strip_prefix(root()).expect("a path below the repository");
    let path_text = relative.to_str().expect("a path in UTF-8").to_owned();
    Source { path: path_text, text }
}
