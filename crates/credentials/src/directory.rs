//! The directory in which an operator keeps keys and what was issued.
//!
//! ```text
//! operator.seed, operator.jwt          the key that signs accounts; whoever has it can do everything
//! accounts/SYS/, accounts/<tenant>/    account.seed, account.jwt, and of a tenant issued.json
//! creds/<tenant>/                      a file for each holder, such as agent-eva.creds
//! system.creds                         the user that tells a running server of changed accounts
//! nats-server.conf                     what the server's configuration includes
//! ```
//!
//! Files that hold a seed can be read by their owner alone. A key is written down as issued before its file is there.

use std::fs::File;
use std::path::{Path, PathBuf};

use concord_wire::Token;
use concord_wire::subject::Permissions;
use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};

use crate::issued::revocations;
use crate::token::Subject;
use crate::{CredentialsFile, Error, Holder, Issued, server_config, token};

mod files;

use files::{Mode, lock, read, read_key, write, write_new};

/// The account whose users change accounts on a running server.
const SYSTEM: &str = "SYS";
/// What is remembered of the directory as a whole.
const SETTINGS: &str = "settings.json";

/// Where a server keeps the tokens of accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolver {
    /// In memory, from its configuration: what changes counts when the configuration is loaded again.
    Memory,
    /// In this folder of the server's machine: what changes can be told to it while it runs.
    Folder(String),
}

/// What is remembered of the directory as a whole.
#[derive(Debug, Serialize, Deserialize)]
struct Settings {
    resolver: Resolver,
    tenants: Vec<String>,
    /// The last time that was written into an account's token: servers believe the later one.
    last: i64,
}

/// What is to be issued, and to whom.
#[derive(Debug)]
pub struct Issue<'a> {
    /// The account.
    pub tenant: &'a str,
    /// Who is given it.
    pub holder: &'a Holder,
    /// What it may do; without, everything within its account.
    pub permissions: Option<&'a Permissions>,
    /// From when on it no longer counts, in seconds since 1970.
    pub expires_at: Option<i64>,
    /// Whether credentials that still count are left beside it.
    pub beside: bool,
}

/// Which credentials of a holder are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All that count.
    All,
    /// All that count but the newest.
    Older,
}

/// The directory. Nobody else changes it while this is there.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    settings: Settings,
    _lock: File,
}

impl Directory {
    /// Makes the directory with an operator, the system account and these tenants. `now` is in seconds since 1970, here and below.
    pub fn create(
        path: &Path,
        resolver: Resolver,
        tenants: &[String],
        now: i64,
    ) -> Result<Self, Error> {
        files::make_folder(path)?;
        let lock = lock(path)?;
        if path.join("operator.seed").exists() {
            return Err(Error::Exists(path.to_owned()));
        }
        let mut directory = Self {
            path: path.to_owned(),
            settings: Settings {
                resolver,
                tenants: Vec::new(),
                last: now,
            },
            _lock: lock,
        };
        let operator = KeyPair::new(KeyPairType::Operator);
        let system = directory.make_account(SYSTEM)?;
        let subject = Subject {
            key: &operator.public_key(),
            name: "concord",
            issued_at: now,
            expires_at: None,
        };
        let said = token::operator(&subject, &system.public_key(), &operator)?;
        write(&path.join("operator.jwt"), &said, Mode::Public)?;
        let pusher = directory.user(&system, "accounts", None, (now, None))?.1;
        write(&path.join("system.creds"), &pusher.text(), Mode::Secret)?;
        // Last of its part: a directory with an operator's key is complete but for its tenants.
        write_new(&path.join("operator.seed"), &operator.seed()?, Mode::Secret)?;
        for tenant in tenants {
            directory.add(tenant)?;
        }
        directory.publish(now)?;
        Ok(directory)
    }

    /// Opens a directory that is there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.join("operator.seed").is_file() {
            return Err(Error::NoDirectory(path.to_owned()));
        }
        let lock = lock(path)?;
        let file = path.join(SETTINGS);
        let settings = serde_json::from_str(&read(&file)?);
        let settings = settings.map_err(|error| Error::Damaged {
            path: file,
            why: error.to_string(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            settings,
            _lock: lock,
        })
    }

    /// The names of the tenants.
    pub fn tenants(&self) -> &[String] {
        &self.settings.tenants
    }

    /// Adds a tenant: an account that sees nothing of the others.
    pub fn add_tenant(&mut self, name: &str, now: i64) -> Result<(), Error> {
        self.add(name)?;
        self.publish(now)
    }

    /// Issues credentials; the path of their file.
    pub fn issue(&mut self, issue: &Issue<'_>, now: i64) -> Result<PathBuf, Error> {
        let Issue {
            tenant,
            holder,
            permissions,
            expires_at,
            beside,
        } = issue;
        let path = self.file_of(tenant, holder);
        let mut issued = self.issued(tenant)?;
        if !beside
            && issued
                .iter()
                .any(|one| one.is_of(holder) && one.counts(now))
        {
            return Err(Error::HasCredentials {
                holder: (*holder).clone(),
                path,
            });
        }
        let account = read_key(&self.account(tenant).join("account.seed"))?;
        let (key, file) = self.user(&account, holder.name(), *permissions, (now, *expires_at))?;
        issued.push(Issued {
            holder: (*holder).clone(),
            key,
            issued_at: now,
            expires_at: *expires_at,
            revoked_at: None,
        });
        self.remember(tenant, &issued)?;
        write(&path, &file.text(), Mode::Secret)?;
        Ok(path)
    }

    /// Revokes what was issued to a holder, also what has expired (whoever does so needs it no more), or what still counts but the
    /// newest: the keys. A server takes them until it is told ([`Directory::accounts`]).
    pub fn revoke(
        &mut self,
        tenant: &str,
        holder: &Holder,
        which: Which,
        now: i64,
    ) -> Result<Vec<String>, Error> {
        let mut issued = self.issued(tenant)?;
        let counting = issued.iter_mut().filter(|one| {
            let expired_too = which == Which::All && one.revoked_at.is_none();
            one.is_of(holder) && (one.counts(now) || expired_too)
        });
        let mut counting: Vec<&mut Issued> = counting.collect();
        if which == Which::Older {
            counting.pop();
        } else if counting.is_empty() {
            return Err(Error::NoCredentials(holder.clone()));
        }
        let mut keys = Vec::new();
        for one in counting {
            one.revoked_at = Some(now);
            keys.push(one.key.clone());
        }
        self.remember(tenant, &issued)?;
        self.publish(now)?;
        if which == Which::All {
            // Of no more use, and best not taken for one that is.
            let _ = std::fs::remove_file(self.file_of(tenant, holder));
        }
        Ok(keys)
    }

    /// The accounts as a running server is to know them: names and tokens, the system account first.
    pub fn accounts(&self) -> Result<Vec<(String, String)>, Error> {
        let tenants = self.settings.tenants.iter().map(String::as_str);
        let names = [SYSTEM].into_iter().chain(tenants);
        names
            .map(|name| {
                let token = read(&self.account(name).join("account.jwt"))?;
                Ok((name.to_owned(), token))
            })
            .collect()
    }

    /// Where the server keeps accounts.
    pub fn resolver(&self) -> &Resolver {
        &self.settings.resolver
    }

    /// The credentials with which a running server is told of changed accounts.
    pub fn system_credentials(&self) -> PathBuf {
        self.path.join("system.creds")
    }

    /// What was issued within a tenant, the oldest first.
    pub fn issued(&self, tenant: &str) -> Result<Vec<Issued>, Error> {
        if !self.settings.tenants.iter().any(|known| known == tenant) {
            return Err(Error::NoTenant {
                name: tenant.to_owned(),
                known: self.settings.tenants.join(", "),
            });
        }
        let path = self.account(tenant).join("issued.json");
        serde_json::from_str(&read(&path)?).map_err(|error| Error::Damaged {
            path,
            why: error.to_string(),
        })
    }

    /// The file of a holder's credentials.
    pub fn file_of(&self, tenant: &str, holder: &Holder) -> PathBuf {
        let folder = self.path.join("creds").join(tenant);
        folder.join(format!("{}.creds", holder.key()))
    }

    /// The file that a server's configuration includes.
    pub fn server_config(&self) -> PathBuf {
        self.path.join("nats-server.conf")
    }

    fn account(&self, name: &str) -> PathBuf {
        self.path.join("accounts").join(name)
    }

    fn add(&mut self, name: &str) -> Result<(), Error> {
        let refused = |why: String| Error::TenantName {
            name: name.to_owned(),
            why,
        };
        Token::new(name).map_err(|error| refused(error.to_string()))?;
        if name == SYSTEM {
            return Err(refused("the system account has it".to_owned()));
        }
        if self.settings.tenants.iter().any(|known| known == name) {
            return Err(Error::TenantExists(name.to_owned()));
        }
        self.make_account(name)?;
        self.settings.tenants.push(name.to_owned());
        self.remember(name, &[])
    }

    fn make_account(&self, name: &str) -> Result<KeyPair, Error> {
        let key = KeyPair::new(KeyPairType::Account);
        let seed = self.account(name).join("account.seed");
        write(&seed, &key.seed()?, Mode::Secret)?;
        Ok(key)
    }

    /// A new key and its credentials.
    fn user(
        &self,
        account: &KeyPair,
        name: &str,
        permissions: Option<&Permissions>,
        (issued_at, expires_at): (i64, Option<i64>),
    ) -> Result<(String, CredentialsFile), Error> {
        let key = KeyPair::new(KeyPairType::User);
        let public = key.public_key();
        let subject = Subject {
            key: &public,
            name,
            issued_at,
            expires_at,
        };
        let said = token::user(&subject, permissions, account)?;
        Ok((public, CredentialsFile::new(said, &key)?))
    }

    fn remember(&self, tenant: &str, issued: &[Issued]) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(issued).map_err(Error::Token)?;
        write(
            &self.account(tenant).join("issued.json"),
            &text,
            Mode::Secret,
        )
    }

    /// Writes the accounts' tokens and the server's configuration anew, as what was issued and revoked says.
    pub fn publish(&mut self, now: i64) -> Result<(), Error> {
        self.settings.last = now.max(self.settings.last + 1);
        let operator = read_key(&self.path.join("operator.seed"))?;
        let mut accounts = Vec::new();
        let tenants = self.settings.tenants.iter().map(String::as_str);
        for name in [SYSTEM].into_iter().chain(tenants) {
            let revoked = match name {
                SYSTEM => Vec::new(),
                tenant => self.issued(tenant)?,
            };
            let key = read_key(&self.account(name).join("account.seed"))?.public_key();
            let subject = Subject {
                key: &key,
                name,
                issued_at: self.settings.last,
                expires_at: None,
            };
            let said = token::account(
                &subject,
                name != SYSTEM,
                &revocations(&revoked, now),
                &operator,
            )?;
            write(&self.account(name).join("account.jwt"), &said, Mode::Public)?;
            accounts.push((name.to_owned(), key, said));
        }
        let settings = serde_json::to_string_pretty(&self.settings).map_err(Error::Token)?;
        write(&self.path.join(SETTINGS), &settings, Mode::Secret)?;
        let operator = read(&self.path.join("operator.jwt"))?;
        let text = server_config::text(operator.trim(), &accounts, &self.settings.resolver);
        write(&self.server_config(), &text, Mode::Public)
    }
}

#[cfg(test)]
mod tests;
