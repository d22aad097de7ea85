//! The directory, as a command leaves it and as the next one finds it.

use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

fn made(folder: &TempDir) -> Directory {
    let resolver = Resolver::Folder("/data/jwt".to_owned());
    Directory::create(folder.path(), resolver, &["CONCORD".to_owned()], 100).unwrap()
}

fn issue<'a>(holder: &'a Holder, expires_at: Option<i64>, beside: bool) -> Issue<'a> {
    Issue {
        tenant: "CONCORD",
        holder,
        permissions: None,
        expires_at,
        beside,
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn every_file_with_a_seed_is_its_owners_alone() {
    let folder = folder();
    let mut directory = made(&folder);
    let eva: Holder = "agent:eva".parse().unwrap();
    directory.issue(&issue(&eva, None, false), 101).unwrap();
    let mut secrets = 0;
    for path in files(folder.path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        // Seeds of operators, accounts and users begin so.
        let is_secret = text.lines().any(|line| {
            ["SO", "SA", "SU"]
                .iter()
                .any(|start| line.starts_with(start))
        });
        if is_secret {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            secrets += 1;
        }
    }
    assert_eq!(
        secrets, 5,
        "the operator's, two accounts', the system user's and eva's"
    );
    let config = std::fs::read_to_string(directory.server_config()).unwrap();
    assert!(
        config.contains("system_account: A") && config.contains("dir: \"/data/jwt\""),
        "{config}"
    );
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder();
    drop(made(&folder));
    let again = Directory::create(folder.path(), Resolver::Memory, &[], 100).unwrap_err();
    assert!(matches!(again, Error::Exists(_)), "{again}");
    let mut directory = Directory::open(folder.path()).unwrap();
    assert_eq!(directory.tenants(), ["CONCORD"]);
    let eva: Holder = "agent:eva".parse().unwrap();
    directory
        .issue(&issue(&eva, Some(200), false), 101)
        .unwrap();
    let again = directory.issue(&issue(&eva, None, false), 199).unwrap_err();
    assert!(matches!(again, Error::HasCredentials { .. }), "{again}");
    directory.issue(&issue(&eva, None, true), 199).unwrap();
    let keys = directory.issued("CONCORD").unwrap();
    assert!(keys[0].key != keys[1].key, "each has a key of its own");
    assert_eq!(
        (
            keys[0].counts(199),
            keys[0].counts(200),
            keys[1].counts(200)
        ),
        (true, false, true)
    );
}

#[test]
fn a_tenant_has_a_name_of_its_own() {
    let folder = folder();
    let mut directory = made(&folder);
    for (name, word) in [
        ("SYS", "the system account has it"),
        ("a.b", "cannot be the name"),
        ("CONCORD", "already"),
    ] {
        let error = directory.add_tenant(name, 101).unwrap_err().to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
    directory.add_tenant("ACME", 101).unwrap();
    let error = directory.issued("ACM").unwrap_err().to_string();
    assert!(error.contains("CONCORD, ACME"), "{error}");
}

#[test]
fn two_commands_do_not_write_at_once_and_open_seeds_are_refused() {
    let folder = folder();
    let mut directory = made(&folder);
    let error = Directory::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Locked(_)), "{error}");
    let seed = folder.path().join("operator.seed");
    std::fs::set_permissions(&seed, std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = directory.add_tenant("ACME", 101).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    let missing = Directory::open(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, Error::NoDirectory(_)), "{missing}");
}

#[test]
fn what_is_revoked_stands_in_the_account_and_the_newest_can_be_kept() {
    let folder = folder();
    let mut directory = made(&folder);
    let eva: Holder = "agent:eva".parse().unwrap();
    let none = directory
        .revoke("CONCORD", &eva, Which::All, 101)
        .unwrap_err();
    assert!(matches!(none, Error::NoCredentials(_)), "{none}");
    directory.issue(&issue(&eva, None, false), 101).unwrap();
    let file = directory.issue(&issue(&eva, None, true), 102).unwrap();
    let account = |directory: &Directory| directory.accounts().unwrap()[1].1.clone();
    let before = account(&directory);
    let older = directory
        .revoke("CONCORD", &eva, Which::Older, 103)
        .unwrap();
    let issued = directory.issued("CONCORD").unwrap();
    assert_eq!(older, [issued[0].key.clone()]);
    assert!(issued[1].counts(103) && file.exists());
    assert_ne!(account(&directory), before);
    let again = directory
        .revoke("CONCORD", &eva, Which::Older, 104)
        .unwrap();
    assert_eq!(again, [] as [String; 0]);
    let all = directory.revoke("CONCORD", &eva, Which::All, 105).unwrap();
    assert_eq!(all, [issued[1].key.clone()]);
    assert!(!file.exists());
    let issued = directory.issued("CONCORD").unwrap();
    assert_eq!(issued[1].revoked_at, Some(105));
}

#[test]
fn what_has_expired_is_revoked_where_nobody_needs_it_any_more() {
    let folder = folder();
    let mut directory = made(&folder);
    let eva: Holder = "agent:eva".parse().unwrap();
    directory
        .issue(&issue(&eva, Some(110), false), 101)
        .unwrap();
    let all = directory.revoke("CONCORD", &eva, Which::All, 120).unwrap();
    let issued = directory.issued("CONCORD").unwrap();
    assert_eq!(all, [issued[0].key.clone()]);
    assert_eq!(issued[0].revoked_at, Some(120));
}
