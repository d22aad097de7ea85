//! What a server's configuration must say.

use crate::Resolver;

/// A user's permissions stand in the first line that its client sends, for which the server's own limit of 4 KB is too small.
const CONTROL_LINE: &str = "64KB";

/// How often a node asks the others for accounts that have changed, and so how long one that was away lets in who was revoked meanwhile.
const NODES_ASK: &str = "10s";

/// The part of a server's configuration by which it knows the operator and its accounts: the system account first, each with its
/// key and token.
pub(crate) fn text(
    operator: &str,
    accounts: &[(String, String, String)],
    resolver: &Resolver,
) -> String {
    let system = accounts.first().map_or("", |(_, key, _)| key.as_str());
    let resolver = match resolver {
        Resolver::Memory => "resolver: MEMORY\n".to_owned(),
        Resolver::Folder(folder) => {
            // The configuration's strings have the escapes of JSON.
            let folder = serde_json::Value::from(folder.as_str());
            format!(
                "resolver {{\n  type: full\n  dir: {folder}\n  allow_delete: false\n  interval: \"{NODES_ASK}\"\n}}\n"
            )
        }
    };
    let preload = accounts
        .iter()
        .map(|(name, key, token)| format!("  # {name}\n  {key}: {token}\n"));
    format!(
        "# Written by `concord credentials`, and written anew when something changes. Include it beside a jetstream block.\n\
         # It holds no secret.\n\
         operator: {operator}\n\
         system_account: {system}\n\
         max_control_line: {CONTROL_LINE}\n\
         {resolver}\
         resolver_preload {{\n{}}}\n",
        preload.collect::<String>()
    )
}
