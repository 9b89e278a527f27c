//! Files of encrypted connections: trusted authorities, and a certificate of the client.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys, RootCertStore};
use urlseen_filter::descriptors;

/// Maximum number of bytes that are read from a file. Longer files are invalid.
const LONGEST: u64 = 4 << 20;

/// Configuration key of the authorities' file.
const CA: &str = "redis.tls_ca";
/// Configuration key of the file with the client's certificate.
const CERT: &str = "redis.tls_cert";
/// Configuration key of the file with the client's private key.
const KEY: &str = "redis.tls_key";

/// Paths of the files in PEM form. Each connection reads them again, so they can be renewed while
/// the program runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the trusted authorities. `None` means the authorities of this machine, or
    /// those in `SSL_CERT_FILE`.
    pub ca: Option<PathBuf>,
    /// Certificate of the client, followed by the certificates between it and its authority.
    pub cert: Option<PathBuf>,
    /// Private key of the client's certificate.
    pub key: Option<PathBuf>,
}

/// Reason why a file cannot be used. No message contains a part of a private key.
#[derive(Debug, thiserror::Error)]
#[error("{key} is {path:?}: {cause}")]
pub struct TlsFileError {
    /// Configuration key that names the file.
    pub key: &'static str,
    path: PathBuf,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("the file cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("the file has no valid certificate in PEM form (BEGIN CERTIFICATE)")]
    NoCertificate,
    #[error(
        "the file has no valid private key in PEM form (BEGIN PRIVATE KEY); a key with a \
         passphrase cannot be read, so remove the passphrase with openssl pkey"
    )]
    NoKey,
    #[error("the key does not belong to the first certificate of redis.tls_cert")]
    OtherKey,
    #[error("{0} is missing, and a certificate works only with its key")]
    Incomplete(&'static str),
}

impl TlsFiles {
    /// Returns the configuration keys that are set, with their paths.
    pub fn set(&self) -> impl Iterator<Item = (&'static str, String)> {
        let files = [(CA, &self.ca), (CERT, &self.cert), (KEY, &self.key)];
        files
            .into_iter()
            .filter_map(|(key, path)| Some((key, path.as_ref()?.display().to_string())))
    }

    /// Reads all files, and returns their problems.
    pub fn problems(&self) -> Vec<TlsFileError> {
        let ca = self.ca.as_deref().and_then(|path| authorities(path).err());
        let cert = self.cert.as_deref().and_then(|path| certificates(CERT, path).err());
        let key = self.key.as_deref().and_then(|path| private_key(path).err());
        let pair = match (&self.cert, &self.key) {
            (Some(cert), None) => Some(failure(CERT, cert, Cause::Incomplete(KEY))),
            (None, Some(key)) => Some(failure(KEY, key, Cause::Incomplete(CERT))),
            _ if cert.is_some() || key.is_some() => None,
            _ => self.certified().err(),
        };
        [ca, cert, key, pair].into_iter().flatten().collect()
    }

    /// Reads the trusted authorities. Returns `None` if no file is set.
    pub(super) fn authorities(&self) -> io::Result<Option<RootCertStore>> {
        self.ca.as_deref().map(|path| authorities(path).map_err(TlsFileError::into_io)).transpose()
    }

    /// Reads the client's certificate and its key. Returns `None` if no file is set.
    pub(super) fn certificate(&self) -> io::Result<Option<Arc<CertifiedKey>>> {
        self.certified().map(|it| it.map(Arc::new)).map_err(TlsFileError::into_io)
    }

    /// Joins the certificate and its key, if they belong together.
    fn certified(&self) -> Result<Option<CertifiedKey>, TlsFileError> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        let (chain, private) = (certificates(CERT, cert)?, private_key(key)?);
        let private = ring::sign::any_supported_type(&private);
        let private = private.map_err(|_| failure(KEY, key, Cause::NoKey))?;
        let certified = CertifiedKey::new(chain, private);
        match certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Some(certified)),
            Err(Error::InconsistentKeys(_)) => Err(failure(KEY, key, Cause::OtherKey)),
            Err(_) => Err(failure(CERT, cert, Cause::NoCertificate)),
        }
    }
}

impl TlsFileError {
    /// Converts this error to the error of a connection. If the process has no free file
    /// descriptor, returns the operating system's error unchanged.
    fn into_io(self) -> io::Error {
        match self.cause {
            Cause::Unreadable(error) if descriptors::are_exhausted(&error) => error,
            cause => io::Error::other(Self { cause, ..self }),
        }
    }
}

fn failure(key: &'static str, path: &Path, cause: Cause) -> TlsFileError {
    TlsFileError { key, path: path.to_owned(), cause }
}

/// Converts an error of a file. The message leaves out the content of the file.
fn unusable(error: pem::Error, otherwise: Cause) -> Cause {
    match error {
        pem::Error::Io(error) => Cause::Unreadable(error),
        _ => otherwise,
    }
}

/// Opens a file to read its beginning.
fn opened(path: &Path) -> Result<impl Read, Cause> {
    File::open(path).map(|file| file.take(LONGEST)).map_err(Cause::Unreadable)
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(CA, path)? {
        roots.add(certificate).map_err(|_| failure(CA, path, Cause::NoCertificate))?;
    }
    Ok(roots)
}

/// Reads all certificates of a file. There is at least one.
fn certificates(
    key: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let read = opened(path).and_then(|file| {
        let all: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(file).collect();
        all.map_err(|error| unusable(error, Cause::NoCertificate))
    });
    match read {
        Ok(all) if all.is_empty() => Err(failure(key, path, Cause::NoCertificate)),
        read => read.map_err(|cause| failure(key, path, cause)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let read = opened(path).and_then(|file| {
        let key = PrivateKeyDer::from_pem_reader(file);
        key.map_err(|error| unusable(error, Cause::NoKey))
    });
    read.map_err(|cause| failure(KEY, path, cause))
}
