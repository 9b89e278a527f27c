//! Replies to clients, in either version of the protocol.

use bytes::{Bytes, BytesMut};
use redis_protocol::resp2::{encode as encode2, types::BytesFrame as Frame2};
use redis_protocol::resp3::{encode::complete as encode3, types::BytesFrame as Frame3};

/// Version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Version that every client speaks.
    Resp2,
    /// Version that a client requests with `HELLO 3`.
    Resp3,
}

/// Reply of the server to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// Simple string `OK` as a reply.
    Ok,
    Simple(&'static str),
    Error(String),
    Number(i64),
    /// Boolean, encoded as a number in version 2.
    Bool(bool),
    Null,
    Bulk(Bytes),
    Array(Vec<Reply>),
    /// Map of names to values, encoded as an array in version 2.
    Map(Vec<(Reply, Reply)>),
}

impl Reply {
    pub(super) fn bulk(text: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(Bytes::from(text.into()))
    }

    /// Makes a number of a count, as Redis does.
    pub(super) fn count(count: u64) -> Self {
        Self::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Makes an error. It may repeat text of the client, which stays on its line.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into().replace(['\r', '\n'], " "))
    }

    /// Appends the encoded reply to `out`.
    pub(super) fn write(self, version: Version, out: &mut BytesMut) {
        let written = match version {
            Version::Resp2 => encode2::extend_encode(out, &self.into_resp2(), false),
            Version::Resp3 => encode3::extend_encode(out, &self.into_resp3(), false),
        };
        written.expect("a reply of ours can be encoded, as its buffer grows");
    }

    fn into_resp2(self) -> Frame2 {
        match self {
            Self::Ok => Frame2::SimpleString(Bytes::from_static(b"OK")),
            Self::Simple(text) => Frame2::SimpleString(Bytes::from_static(text.as_bytes())),
            Self::Error(text) => Frame2::Error(text.into()),
            Self::Number(number) => Frame2::Integer(number),
            Self::Bool(is) => Frame2::Integer(i64::from(is)),
            Self::Null => Frame2::Null,
            Self::Bulk(bytes) => Frame2::BulkString(bytes),
            Self::Array(all) => Frame2::Array(all.into_iter().map(Self::into_resp2).collect()),
            Self::Map(all) => {
                let flat = all.into_iter().flat_map(|(name, value)| [name, value]);
                Frame2::Array(flat.map(Self::into_resp2).collect())
            }
        }
    }

    fn into_resp3(self) -> Frame3 {
        let attributes = None;
        match self {
            Self::Ok => Frame3::SimpleString { data: Bytes::from_static(b"OK"), attributes },
            Self::Simple(text) => {
                Frame3::SimpleString { data: Bytes::from_static(text.as_bytes()), attributes }
            }
            Self::Error(text) => Frame3::SimpleError { data: text.into(), attributes },
            Self::Number(data) => Frame3::Number { data, attributes },
            Self::Bool(data) => Frame3::Boolean { data, attributes },
            Self::Null => Frame3::Null,
            Self::Bulk(bytes) => Frame3::BlobString { data: bytes, attributes },
            Self::Array(all) => {
                let data = all.into_iter().map(Self::into_resp3).collect();
                Frame3::Array { data, attributes }
            }
            Self::Map(all) => {
                let all = all.into_iter();
                let data = all.map(|(name, value)| (name.into_resp3(), value.into_resp3()));
                Frame3::Map { data: data.collect(), attributes }
            }
        }
    }
}
