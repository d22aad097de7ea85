//! Why there are no credentials.

use std::path::PathBuf;

use crate::Holder;

/// Why the directory of the credentials cannot be used as it was asked to be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{} cannot be used", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// There is something already, and nothing is overwritten unasked.
    #[error("{} is there already, and its keys would be lost; choose another directory", .0.display())]
    Exists(PathBuf),
    /// There are no credentials in this directory.
    #[error("there are no credentials in {}; `concord credentials init` makes them", .0.display())]
    NoDirectory(PathBuf),
    /// Somebody else changes the directory now.
    #[error("another command works in {}; try again when it has ended", .0.display())]
    Locked(PathBuf),
    /// Others than its owner may read a secret key.
    #[error("{path} can be read by others than its owner; say `chmod 600 {path}`", path = .0.display())]
    Open(PathBuf),
    /// A file is not what its name says.
    #[error("{} is damaged: {why}; take it from a copy of the directory", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No tenant of this name.
    #[error("there is no tenant {name}; there are {known}. `concord credentials tenant` adds one")]
    NoTenant {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A tenant of this name.
    #[error("there is a tenant {0} already")]
    TenantExists(String),
    /// A name that no tenant can have.
    #[error("{name:?} cannot be the name of a tenant: {why}")]
    TenantName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Its holder has credentials that still count.
    #[error(
        "{holder} has credentials already ({}); `concord credentials rotate` takes new ones in their place, and --force issues \
         others beside them",
        path.display()
    )]
    HasCredentials {
        /// The holder.
        holder: Holder,
        /// The path of its file.
        path: PathBuf,
    },
    /// Nothing was issued to it that still counts.
    #[error(
        "{0} has no credentials that still count; `concord credentials list --all` shows what was issued"
    )]
    NoCredentials(Holder),
    /// A text that names no holder.
    #[error("{text:?} names nobody: {why}")]
    Holder {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The keys cannot be made or used.
    #[error("the key cannot be used")]
    Key(#[from] nkeys::error::Error),
    /// Claims that cannot be written.
    #[error("the token cannot be written")]
    Token(#[source] serde_json::Error),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
