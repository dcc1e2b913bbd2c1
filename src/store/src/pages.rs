//! A look at the pages of a store before LMDB maps them. LMDB follows whatever a page says, so a file with noise in the
//! place of its roots would end the process (SIGSEGV) where an error is wanted.
//!
//! Source: LMDB 0.9, `mdb.c`: `MDB_page`, `MDB_meta`, `MDB_db`, `MDB_node`, for machines of 64 bits with little ends.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u32 = 0xBEEF_C0DE;
/// Length of a page's header.
const HEADER: usize = 16;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
/// Flag of a node whose value is the description of a database.
const SUBDATA: u16 = 2;
/// Root of an empty database.
const NONE: u64 = u64::MAX;
/// Places within a meta page: both databases, and the number of the transaction.
const FREE: usize = 40;
const MAIN: usize = 88;
const TRANSACTION: usize = 144;
const META: usize = 152;
/// Place of the root within the description of a database.
const ROOT: usize = 40;

/// What is wrong with the roots of the file; None when they are as they should be, when there is no file yet, and when
/// it is for LMDB to judge (a file without a meta page of its own).
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn damage(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(meta) = newest_meta(&file)? else { return Ok(None) };
    let pages = Pages { file, size: meta.size };
    for (name, root) in [("free pages", meta.free), ("names", meta.main)] {
        if let Err(fault) = pages.root(root)? {
            return Ok(Some(format!("the page of its {name} is none: {fault}")));
        }
    }
    pages.named(meta.main)
}

struct Meta {
    size: usize,
    transaction: u64,
    free: u64,
    main: u64,
}

/// The meta page of the last transaction.
fn newest_meta(file: &File) -> io::Result<Option<Meta>> {
    let Some(first) = meta_at(file, 0)? else { return Ok(None) };
    let second = meta_at(file, first.size as u64)?.filter(|second| second.transaction > first.transaction);
    Ok(Some(second.unwrap_or(first)))
}

fn meta_at(file: &File, place: u64) -> io::Result<Option<Meta>> {
    let mut page = [0; META];
    match file.read_exact_at(&mut page, place) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let size = u32_at(&page, FREE).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let sane = u32_at(&page, HEADER) == Some(MAGIC) && size.is_power_of_two() && (512..=65_536).contains(&size);
    let read = |place| u64_at(&page, place).unwrap_or(NONE);
    Ok(sane.then(|| Meta { size, transaction: read(TRANSACTION), free: read(FREE + ROOT), main: read(MAIN + ROOT) }))
}

struct Pages {
    file: File,
    size: usize,
}

impl Pages {
    /// The page of a root, None for an empty database; or why it is none.
    fn root(&self, number: u64) -> io::Result<Result<Option<Vec<u8>>, String>> {
        if number == NONE {
            return Ok(Ok(None));
        }
        let mut page = vec![0; self.size];
        let place = number.checked_mul(self.size as u64);
        let read = place.map(|place| self.file.read_exact_at(&mut page, place));
        match read {
            Some(Ok(())) => {}
            Some(Err(error)) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
            Some(Err(_)) | None => return Ok(Err(format!("page {number} lies behind the end of the file"))),
        }
        let (flags, lower, upper) = (u16_at(&page, 10), u16_at(&page, 12), u16_at(&page, 14));
        let kind = flags.unwrap_or(0) & (BRANCH | LEAF);
        let (lower, upper) = (lower.map_or(0, usize::from), upper.map_or(0, usize::from));
        let sane = u64_at(&page, 0) == Some(number)
            && (kind == BRANCH || kind == LEAF)
            && (HEADER..=upper).contains(&lower)
            && upper <= self.size;
        Ok(if sane { Ok(Some(page)) } else { Err(format!("page {number} does not say that it is one")) })
    }

    /// Looks at the roots of the databases that a root leaf names.
    fn named(&self, main: u64) -> io::Result<Option<String>> {
        let Ok(Some(page)) = self.root(main)? else { return Ok(None) };
        if u16_at(&page, 10).unwrap_or(0) & LEAF == 0 {
            return Ok(None);
        }
        let count = usize::from(u16_at(&page, 12).unwrap_or(0)).saturating_sub(HEADER) / 2;
        for number in 0..count {
            let Some(root) = u16_at(&page, HEADER + 2 * number).and_then(|node| named_root(&page, usize::from(node)))
            else {
                return Ok(Some(format!("page {main} is damaged at entry {number}")));
            };
            if let Some(root) = root
                && let Err(fault) = self.root(root)?
            {
                return Ok(Some(fault));
            }
        }
        Ok(None)
    }
}

/// The root of the database that a node describes, if it describes one; None when the node leaves its page.
fn named_root(page: &[u8], node: usize) -> Option<Option<u64>> {
    let (flags, key) = (u16_at(page, node + 4)?, usize::from(u16_at(page, node + 6)?));
    let root = u64_at(page, node + 8 + key + ROOT);
    if flags & SUBDATA == 0 { Some(None) } else { root.map(Some) }
}

fn u16_at(page: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*page.get(place..)?.first_chunk()?))
}

fn u32_at(page: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*page.get(place..)?.first_chunk()?))
}

fn u64_at(page: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*page.get(place..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Environment, MapSize};

    fn store() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.mdb");
        drop(Environment::open(folder.path(), MapSize::default()).unwrap());
        let whole = std::fs::read(&path).unwrap();
        (folder, path, whole)
    }

    #[test]
    fn a_store_that_lmdb_wrote_is_whole_and_none_is_no_damage() {
        let (folder, path, _) = store();
        assert_eq!(damage(&path).unwrap(), None);
        assert_eq!(damage(&folder.path().join("none")).unwrap(), None);
    }

    #[test]
    fn any_root_that_is_overwritten_is_found() {
        let (_folder, path, whole) = store();
        let size = newest_meta(&File::open(&path).unwrap()).unwrap().unwrap().size;
        let mut found = 0;
        for page in 2..whole.len() / size {
            let mut bytes = whole.clone();
            bytes[page * size..(page + 1) * size].fill(0xA5);
            std::fs::write(&path, &bytes).unwrap();
            found += usize::from(damage(&path).unwrap().is_some());
        }
        // Pages of earlier transactions are free; at least those of the names and of the settings are in use.
        assert!(found >= 2, "{found}");
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_judged() {
        let (_folder, path, whole) = store();
        for seed in 0..200_usize {
            let mut bytes = whole.clone();
            // Numbers all over the roots and what they lead to.
            for step in 0..40 {
                let place = (seed * 7919 + step * 104_729) % bytes.len();
                bytes[place] = (seed * 31 + step * 17) as u8;
            }
            std::fs::write(&path, &bytes).unwrap();
            let _ = damage(&path).unwrap();
        }
    }
}
