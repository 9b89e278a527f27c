//! Rules of the Redis server's address, and of the files for encrypted connections to it.

use super::mask::masked;
use super::raw::{Raw, ValueError};
use super::value::Rule;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use urlseen_core::redis::RedisAddress;

/// Address of a Redis server.
pub(super) struct Redis;

impl Rule<RedisAddress> for Redis {
    fn read(&self, raw: &Raw) -> Result<RedisAddress, ValueError> {
        RedisAddress::parse(raw.text()?).map_err(|error| ValueError::Because(error.to_string()))
    }

    fn allowed(&self) -> String {
        urlseen_core::redis::ALLOWED.to_owned()
    }

    fn write(&self, value: &RedisAddress) -> Json {
        value.without_password().to_string().into()
    }

    fn shown(&self, raw: &Raw) -> String {
        match raw {
            Raw::Text(text) | Raw::String(text) => Raw::Text(masked(text)).shown(),
            // A number may be a password, so only its type is shown.
            other => other.kind().to_owned(),
        }
    }
}

/// Path of a file in PEM form; `""` means no file.
pub(super) struct PemFile;

impl Rule<Option<PathBuf>> for PemFile {
    fn read(&self, raw: &Raw) -> Result<Option<PathBuf>, ValueError> {
        match raw.text()? {
            "" => Ok(None),
            path if path.contains('\0') => Err(ValueError::Value),
            path => Ok(Some(path.into())),
        }
    }

    fn allowed(&self) -> String {
        "\"\" (none), or the path of a file in PEM form".to_owned()
    }

    fn write(&self, value: &Option<PathBuf>) -> Json {
        value.as_deref().unwrap_or(Path::new("")).to_string_lossy().into()
    }
}
