//! Files in a folder.

use std::io;
use std::path::Path;

use bytes::Bytes;
use tokio::fs;
use tokio::io::AsyncWriteExt as _;

/// Writes beside the file, and puts it in its place when the disk has it.
pub(super) async fn write(path: &Path, bytes: &[u8], is_first: bool) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if is_first {
        fs::create_dir_all(folder).await?;
    }
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = fs::File::create(&unfinished).await?;
    file.write_all(bytes).await?;
    file.sync_all().await?;
    drop(file);
    fs::rename(&unfinished, path).await?;
    // The name itself is safe only when the folder is.
    fs::File::open(folder).await?.sync_all().await
}

pub(super) async fn read(path: &Path) -> io::Result<Option<Bytes>> {
    match fs::read(path).await {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) async fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) async fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut entries = match fs::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
        Err(error) => return Err(error),
    };
    while let Some(entry) = entries.next_entry().await? {
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}
