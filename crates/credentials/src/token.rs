//! Tokens: what a key says of another, signed. Their form is version 2 of the JSON Web Tokens of NATS, as the package
//! `github.com/nats-io/jwt/v2` writes them (`claims.go`, `operator_claims.go`, `account_claims.go`, `user_claims.go`) and
//! nats-server reads them: three parts in base64 for addresses, without padding.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use concord_wire::subject::Permissions;
use data_encoding::BASE32_NOPAD;
use nkeys::KeyPair;
use serde::Serialize;
use sha2::{Digest, Sha512_256};

use crate::Error;

/// The first part of every token.
const HEADER: &str = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
/// Version of the claims.
const VERSION: u8 = 2;
/// A limit that is none.
const UNLIMITED: i64 = -1;

/// What is said of somebody, and by whom. Times are in seconds since 1970.
#[derive(Serialize)]
struct Claims<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    /// A digest of the other fields.
    #[serde(skip_serializing_if = "String::is_empty")]
    jti: String,
    iat: i64,
    /// The key that signs.
    iss: String,
    name: &'a str,
    /// The key of which it is said.
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    nats: Option<T>,
}

/// What all tokens are about: the key, its name, and the time in seconds since 1970.
pub(crate) struct Subject<'a> {
    pub(crate) key: &'a str,
    pub(crate) name: &'a str,
    pub(crate) issued_at: i64,
    pub(crate) expires_at: Option<i64>,
}

#[derive(Serialize)]
struct Operator<'a> {
    /// The account whose users may change accounts on a running server.
    system_account: &'a str,
    r#type: &'static str,
    version: u8,
}

/// The token of an operator, which signs itself.
pub(crate) fn operator(
    subject: &Subject<'_>,
    system_account: &str,
    signer: &KeyPair,
) -> Result<String, Error> {
    let claims = Operator {
        system_account,
        r#type: "operator",
        version: VERSION,
    };
    sign(subject, claims, signer)
}

#[derive(Serialize)]
struct Account<'a> {
    limits: AccountLimits,
    /// The keys of users who are refused, and the time up to which a token of theirs is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    revocations: &'a BTreeMap<String, i64>,
    default_permissions: UserPermissions<'static>,
    r#type: &'static str,
    version: u8,
}

#[derive(Serialize)]
struct AccountLimits {
    subs: i64,
    data: i64,
    payload: i64,
    imports: i64,
    exports: i64,
    wildcards: bool,
    conn: i64,
    leaf: i64,
    #[serde(flatten)]
    streams: Option<StreamLimits>,
}

/// Without these an account has no JetStream.
#[derive(Serialize)]
struct StreamLimits {
    mem_storage: i64,
    disk_storage: i64,
    streams: i64,
    consumer: i64,
}

/// The token of an account; `has_streams` says whether it has JetStream.
pub(crate) fn account(
    subject: &Subject<'_>,
    has_streams: bool,
    revocations: &BTreeMap<String, i64>,
    signer: &KeyPair,
) -> Result<String, Error> {
    let claims = Account {
        limits: AccountLimits {
            subs: UNLIMITED,
            data: UNLIMITED,
            payload: UNLIMITED,
            imports: UNLIMITED,
            exports: UNLIMITED,
            wildcards: true,
            conn: UNLIMITED,
            leaf: UNLIMITED,
            streams: has_streams.then_some(StreamLimits {
                mem_storage: UNLIMITED,
                disk_storage: UNLIMITED,
                streams: UNLIMITED,
                consumer: UNLIMITED,
            }),
        },
        revocations,
        default_permissions: UserPermissions::default(),
        r#type: "account",
        version: VERSION,
    };
    sign(subject, claims, signer)
}

#[derive(Serialize)]
struct User<'a> {
    #[serde(flatten)]
    permissions: UserPermissions<'a>,
    subs: i64,
    data: i64,
    payload: i64,
    r#type: &'static str,
    version: u8,
}

#[derive(Serialize, Default)]
struct UserPermissions<'a> {
    r#pub: Allowed<'a>,
    sub: Allowed<'a>,
}

/// Subjects; none for all.
#[derive(Serialize, Default)]
struct Allowed<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    allow: &'a [String],
}

/// The token of a user; without permissions it may do everything within its account.
pub(crate) fn user(
    subject: &Subject<'_>,
    permissions: Option<&Permissions>,
    signer: &KeyPair,
) -> Result<String, Error> {
    let permissions =
        permissions.map_or_else(UserPermissions::default, |permissions| UserPermissions {
            r#pub: Allowed {
                allow: &permissions.publish,
            },
            sub: Allowed {
                allow: &permissions.subscribe,
            },
        });
    let claims = User {
        permissions,
        subs: UNLIMITED,
        data: UNLIMITED,
        payload: UNLIMITED,
        r#type: "user",
        version: VERSION,
    };
    sign(subject, claims, signer)
}

fn sign<T: Serialize>(subject: &Subject<'_>, nats: T, signer: &KeyPair) -> Result<String, Error> {
    let mut claims = Claims::<T> {
        exp: subject.expires_at,
        jti: String::new(),
        iat: subject.issued_at,
        iss: signer.public_key(),
        name: subject.name,
        sub: subject.key,
        nats: None,
    };
    let digest = Sha512_256::digest(serde_json::to_vec(&claims).map_err(Error::Token)?);
    claims.jti = BASE32_NOPAD.encode(&digest);
    claims.nats = Some(nats);
    let claims = serde_json::to_vec(&claims).map_err(Error::Token)?;
    let said = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(HEADER),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signature = signer.sign(said.as_bytes())?;
    Ok(format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use nkeys::KeyPairType;
    use serde_json::{Value, json};

    use super::*;

    fn parts(token: &str) -> (Value, Value, Vec<u8>) {
        let parts: Vec<Vec<u8>> = token
            .split('.')
            .map(|part| URL_SAFE_NO_PAD.decode(part).unwrap())
            .collect();
        let json = |part: &[u8]| serde_json::from_slice(part).unwrap();
        (json(&parts[0]), json(&parts[1]), parts[2].clone())
    }

    #[test]
    fn a_users_token_says_what_it_may_do_and_is_signed_by_its_account() {
        let (account, user_key) = (
            KeyPair::new(KeyPairType::Account),
            KeyPair::new(KeyPairType::User).public_key(),
        );
        let subject = Subject {
            key: &user_key,
            name: "eva",
            issued_at: 1_700_000_000,
            expires_at: Some(1_700_000_060),
        };
        let permissions = Permissions {
            publish: vec!["a.b".to_owned()],
            subscribe: vec!["c.>".to_owned()],
        };
        let token = user(&subject, Some(&permissions), &account).unwrap();
        let (header, claims, signature) = parts(&token);
        assert_eq!(header, json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
        let expected = json!({
            "exp": 1_700_000_060, "iat": 1_700_000_000, "iss": account.public_key(), "jti": claims["jti"], "name": "eva",
            "sub": user_key,
            "nats": {
                "pub": { "allow": ["a.b"] }, "sub": { "allow": ["c.>"] }, "subs": -1, "data": -1, "payload": -1,
                "type": "user", "version": 2,
            },
        });
        assert_eq!(claims, expected);
        assert_eq!(claims["jti"].as_str().map(str::len), Some(52));
        let (said, _) = token.rsplit_once('.').unwrap();
        account.verify(said.as_bytes(), &signature).unwrap();
    }

    #[test]
    fn an_account_without_streams_has_no_jetstream() {
        let operator = KeyPair::new(KeyPairType::Operator);
        let key = KeyPair::new(KeyPairType::Account).public_key();
        let subject = Subject {
            key: &key,
            name: "A",
            issued_at: 1,
            expires_at: None,
        };
        let of = |has_streams, revoked: &[(&str, i64)]| {
            let revoked = revoked.iter().map(|(key, at)| ((*key).to_owned(), *at));
            parts(&account(&subject, has_streams, &revoked.collect(), &operator).unwrap()).1
        };
        assert_eq!(of(false, &[])["nats"]["limits"].get("disk_storage"), None);
        assert_eq!(of(false, &[])["nats"].get("revocations"), None);
        let claims = of(true, &[("U1", 7)]);
        assert_eq!(claims["nats"]["limits"]["disk_storage"], -1);
        assert_eq!(claims["nats"]["revocations"], json!({ "U1": 7 }));
        assert_eq!(claims.get("exp"), None);
    }
}
