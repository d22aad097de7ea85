//! Files in a folder.

use std::io;
use std::path::Path;

use bytes::Bytes;
use tokio::fs;
use tokio::io::AsyncWriteExt as _;

/// Writes beside the file, and puts it in its place when the disk has it.
pub(super) async fn write(path: &Path, bytes: &[u8], is_first: bool) -> io::Result<()> {
    let folder = above(path);
    if is_first {
        make(folder).await?;
    }
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = fs::File::create(&unfinished).await?;
    file.write_all(bytes).await?;
    file.sync_all().await?;
    drop(file);
    fs::rename(&unfinished, path).await?;
    sync(folder).await
}

/// Makes a folder and those above it that are missing; done when the disk has them.
async fn make(folder: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    for one in folder.ancestors() {
        if one.as_os_str().is_empty() || fs::try_exists(one).await? {
            break;
        }
        missing.push(one);
    }
    fs::create_dir_all(folder).await?;
    for new in missing {
        sync(above(new)).await?;
    }
    Ok(())
}

/// Has the disk take what names a folder has in it: a file, or a folder, is safe only when its name is.
async fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder).await?.sync_all().await
}

/// The folder that a file or a folder is in.
fn above(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_folders_of_the_first_file_are_made_however_many_are_missing() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a/b/c/segment");
        let error = write(&file, b"1", false).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        for bytes in [b"1", b"2"] {
            write(&file, bytes, true).await.unwrap();
            assert_eq!(read(&file).await.unwrap().unwrap(), bytes.as_slice());
        }
        let names = list(above(&file)).await.unwrap();
        assert_eq!(names, ["segment"]);
    }

    #[test]
    fn what_has_no_folder_is_in_this_one() {
        for (path, folder) in [("a/b", "a"), ("a", "."), ("/a", "/"), ("./a", ".")] {
            assert_eq!(above(Path::new(path)), Path::new(folder), "{path}");
        }
    }
}
