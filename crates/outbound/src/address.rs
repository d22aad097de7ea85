//! The hosts that may be called. Strangers write the addresses, so only listed hosts are called. An address inside this machine
//! or its network is called only where that is allowed, whether it is given as a number or by a name that leads there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use crate::Error;

/// A scheme, a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    is_tls: bool,
    host: Host<String>,
    port: u16,
}

impl Origin {
    /// The origin of an address. None when it is neither `https://` nor `http://`.
    pub fn of(url: &Url) -> Option<Self> {
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        Some(Self {
            is_tls,
            host: url.host()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }

    /// Reads `example.org`, `example.org:8443` or `http://10.0.0.7:8080`.
    pub fn read(text: &str) -> Option<Self> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        let url = Url::parse(&whole).ok()?;
        let bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && !has_user(&url);
        Self::of(&url).filter(|_| bare)
    }
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The hosts that may be called.
#[derive(Debug, Clone)]
pub struct Allowed {
    origins: Vec<Origin>,
    private: bool,
    settings: (&'static str, &'static str),
}

/// An address whose host is listed. Its name has not been looked up yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    is_tls: bool,
    host: Host<String>,
    port: u16,
    authority: String,
    path: String,
}

impl Target {
    /// Whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The host of the address.
    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    /// The value of the header `Host`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The path and the query.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Allowed {
    /// Allows these origins, and private addresses only if `private` is true. `settings` are the names of the two settings that
    /// would allow more, for refusals: that of the hosts and that of private addresses.
    pub fn new(
        origins: Vec<Origin>,
        private: bool,
        settings: (&'static str, &'static str),
    ) -> Self {
        Self {
            origins,
            private,
            settings,
        }
    }

    /// Parses an address. Fails if its origin is not listed.
    pub fn target(&self, address: &str) -> Result<Target, Error> {
        let refused = |why: String| Error::Refused(why);
        let url = Url::parse(address)
            .map_err(|error| refused(format!("the address cannot be read: {error}")))?;
        let shown = url.host_str().unwrap_or_default().to_owned();
        let origin = Origin::of(&url)
            .ok_or_else(|| refused("the address is neither https:// nor http://".into()))?;
        if has_user(&url) {
            return Err(refused(format!("the address on {shown} holds a user name")));
        }
        if !self.origins.contains(&origin) {
            let scheme = url.scheme();
            let (hosts, _) = self.settings;
            return Err(refused(format!(
                "{scheme}://{shown}:{} is not among {hosts}",
                origin.port
            )));
        }
        let path = url.query().map_or_else(
            || url.path().to_owned(),
            |query| format!("{}?{query}", url.path()),
        );
        let authority = url
            .port()
            .map_or_else(|| shown.clone(), |port| format!("{shown}:{port}"));
        Ok(Target {
            is_tls: origin.is_tls,
            host: origin.host,
            port: origin.port,
            authority,
            path,
        })
    }

    /// Looks up the socket addresses of a target. The connection is made to these addresses, so a name cannot lead elsewhere in
    /// between.
    pub(crate) async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, Error> {
        let found: Vec<SocketAddr> = match &target.host {
            Host::Ipv4(ip) => vec![(*ip, target.port).into()],
            Host::Ipv6(ip) => vec![(*ip, target.port).into()],
            Host::Domain(name) => {
                let found = tokio::net::lookup_host((name.as_str(), target.port)).await;
                found
                    .map_err(|error| {
                        Error::Unreachable(format!("{name} cannot be looked up: {error}"))
                    })?
                    .collect()
            }
        };
        let host = &target.host;
        if found.is_empty() {
            return Err(Error::Unreachable(format!("{host} has no address")));
        }
        let open: Vec<SocketAddr> = found
            .into_iter()
            .filter(|one| self.private || is_public(one.ip()))
            .collect();
        if open.is_empty() {
            let (_, private) = self.settings;
            let why =
                format!("{host} leads into this machine or its network, which {private} forbids");
            return Err(Error::Refused(why));
        }
        Ok(open)
    }
}

/// Whether an address is one of the public internet, by the registries of special addresses (RFC 6890 and its kin).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !(special || ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, c, ..] = ip.segments();
    let [.., w, x, y, z] = ip.octets();
    let last = Ipv4Addr::new(w, x, y, z);
    // An address that holds one of version 4 leads to that one.
    if let Some(ip) = ip.to_ipv4_mapped() {
        return is_public_v4(ip);
    }
    if a == 0x64 && b == 0xff9b {
        return c == 0 && is_public_v4(last);
    }
    // Only 2000::/3 is assigned. Of that, 2001::/23 (with Teredo), 2001:db8::/32 and 2002::/16 (6to4) are not public.
    (a & 0xe000) == 0x2000
        && !(a == 0x2001 && (b < 0x200 || b == 0xdb8))
        && a != 0x2002
        && (a & 0xfff0) != 0x3ff0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(hosts: &[&str], private: bool) -> Allowed {
        Allowed::new(
            hosts
                .iter()
                .map(|host| Origin::read(host).unwrap())
                .collect(),
            private,
            ("hosts", "allow_private"),
        )
    }

    #[test]
    fn only_what_is_listed_is_called() {
        let allowed = allowed(
            &[
                "Hooks.example.org",
                "other.example.org:8443",
                "http://10.0.0.7:8080",
            ],
            false,
        );
        for (address, path) in [
            ("https://hooks.example.org/a/b?c=d", "/a/b?c=d"),
            ("https://HOOKS.example.org:443", "/"),
            ("https://other.example.org:8443/x#y", "/x"),
            ("http://10.0.0.7:8080/", "/"),
        ] {
            assert_eq!(allowed.target(address).unwrap().path, path, "{address}");
        }
        for address in [
            "http://hooks.example.org/",
            "https://hooks.example.org:8443/",
            "https://hooks.example.org.evil.example/",
            "https://hooks.example.org@evil.example/",
            "https://evil.example\\@hooks.example.org/",
            "https://sub.hooks.example.org/",
            "https://user:pass@hooks.example.org/",
            "ftp://hooks.example.org/",
            "https://",
            "hooks.example.org",
        ] {
            assert!(
                matches!(allowed.target(address), Err(Error::Refused(_))),
                "{address}"
            );
        }
    }

    #[test]
    fn what_is_no_host_is_not_listed() {
        for text in [
            "",
            "https://a.example/path",
            "a.example?x",
            "u@a.example",
            "ftp://a.example",
            "a b",
            "a.example:x",
        ] {
            assert_eq!(Origin::read(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_that_are_not_public_are_known() {
        for private in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::808:808",
            "2001:db8::1",
            "2002:7f00:1::",
            "2001::1",
            "::7f00:1",
            "3fff::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[tokio::test]
    async fn what_leads_inside_is_refused_unless_that_is_allowed() {
        for (host, address) in [
            ("http://127.0.0.1:9", "http://2130706433:9/"),
            ("http://localhost:9", "http://localhost:9/"),
        ] {
            let strict = allowed(&[host], false);
            let refused = strict.addresses(&strict.target(address).unwrap()).await;
            assert!(
                matches!(refused, Err(Error::Refused(_))),
                "{address}: {refused:?}"
            );
            let open = allowed(&[host], true);
            assert!(
                !open
                    .addresses(&open.target(address).unwrap())
                    .await
                    .unwrap()
                    .is_empty(),
                "{address}"
            );
        }
    }
}
