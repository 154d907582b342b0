//! Directories and files as values, to be read, changed and put back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use laneway_seeded::Random;

/// What is on the disk: directories, and files with their contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) directories: BTreeSet<PathBuf>,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Files {
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(files: [(PathBuf, Vec<u8>); N]) -> Files {
        let directories = files.iter().filter_map(|(path, _)| path.parent().map(Path::to_owned)).collect();
        Files { directories, files: files.into() }
    }

    #[cfg(test)]
    pub(crate) fn contents(&self, path: &Path) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// What lies in `place`, which counts as safe.
    pub(crate) fn read(place: &Path) -> Result<Files, String> {
        let mut files = Files::default();
        files.read_directory(place).map_err(|error| format!("{}: {error}", place.display()))?;
        Ok(files)
    }

    fn read_directory(&mut self, place: &Path) -> std::io::Result<()> {
        self.directories.insert(place.to_owned());
        for entry in std::fs::read_dir(place)? {
            let path = entry?.path();
            if path.is_dir() {
                self.read_directory(&path)?
            } else {
                drop(self.files.insert(path.clone(), std::fs::read(&path)?))
            }
        }
        Ok(())
    }

    /// Puts all of it where it belongs, in place of what was there.
    pub(crate) fn write(&self, place: &Path) -> Result<(), String> {
        let write = || -> std::io::Result<()> {
            std::fs::remove_dir_all(place)?;
            std::fs::create_dir_all(place)?;
            // Parents come before their children.
            for directory in &self.directories {
                std::fs::create_dir_all(directory)?;
            }
            for (path, contents) in &self.files {
                std::fs::write(path, contents)?;
            }
            Ok(())
        };
        write().map_err(|error| format!("{}: {error}", place.display()))
    }

    /// Another process's memory was mapped there, and nothing of it counts after a start.
    pub(crate) fn spoil(&mut self, ending: &str, random: &mut Random) {
        let paths: Vec<PathBuf> =
            self.files.keys().filter(|path| path.to_string_lossy().ends_with(ending)).cloned().collect();
        for path in paths {
            match random.index(3) {
                0 => drop(self.files.remove(&path)),
                1 => {
                    let contents = self.files.entry(path).or_default();
                    contents.iter_mut().for_each(|byte| *byte = random.number() as u8);
                }
                _ => {}
            }
        }
    }
}
