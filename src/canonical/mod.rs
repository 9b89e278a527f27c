//! w3lib's safe and canonical URL.
