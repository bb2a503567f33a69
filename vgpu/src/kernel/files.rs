//! A read-only tree of text files by path: the virtual sysfs.
//!
//! Contract: reading allocates the answer and never blocks. Directories exist because there are files below them.
//! Content is fixed at construction, or generated at each read if a maker was given.

use std::collections::{BTreeMap, BTreeSet};
use zrt_kmd::Errno;

/// Makes the text of a file when it is read.
type Maker = Box<dyn Fn() -> String + Send + Sync>;

enum Content {
    Text(String),
    Made(Maker),
}

/// The tree.
#[derive(Default)]
pub(crate) struct FileTree {
    files: BTreeMap<String, Content>,
    /// Alternative names of folders, longest first when resolved: (alias, folder).
    aliases: Vec<(String, String)>,
}

impl FileTree {
    /// Adds a file with fixed text.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.insert(path.into(), Content::Text(text.into()));
    }

    /// Adds a file whose text is generated at each read.
    pub fn add_made(&mut self, path: impl Into<String>, make: impl Fn() -> String + Send + Sync + 'static) {
        self.files.insert(path.into(), Content::Made(Box::new(make)));
    }

    /// Gives the folder `folder` a second path.
    pub fn add_alias(&mut self, alias: impl Into<String>, folder: impl Into<String>) {
        self.aliases.push((alias.into(), folder.into()));
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let path = self.resolve(path);
        match self.files.get(&path) {
            Some(Content::Text(text)) => Ok(text.clone().into_bytes()),
            Some(Content::Made(make)) => Ok(make().into_bytes()),
            None if self.is_directory(&path) => Err(Errno::EISDIR),
            None => Err(Errno::ENOENT),
        }
    }

    /// The names in a folder.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let path = self.resolve(path);
        if self.files.contains_key(&path) {
            return Err(Errno::ENOTDIR);
        }
        let prefix = format!("{path}/");
        let mut names: BTreeSet<String> = self
            .under(&prefix)
            .filter_map(|file| file[prefix.len()..].split('/').next().map(str::to_owned))
            .collect();
        let aliases = self.aliases.iter().filter_map(|(alias, _)| alias.strip_prefix(&prefix));
        names.extend(aliases.filter_map(|rest| rest.split('/').next().map(str::to_owned)));
        if names.is_empty() { Err(Errno::ENOENT) } else { Ok(names.into_iter().collect()) }
    }

    fn is_directory(&self, path: &str) -> bool {
        self.under(&format!("{path}/")).next().is_some()
    }

    fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a String> {
        self.files
            .range(prefix.to_owned()..)
            .map(|(path, _)| path)
            .take_while(move |path| path.starts_with(prefix))
    }

    /// The path without empty and `.` components, with aliases followed once.
    fn resolve(&self, path: &str) -> String {
        let mut plain = String::with_capacity(path.len());
        for component in path.split('/').filter(|component| !component.is_empty() && *component != ".") {
            plain.push('/');
            plain.push_str(component);
        }
        for (alias, folder) in &self.aliases {
            if let Some(rest) = plain.strip_prefix(alias.as_str())
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return format!("{folder}{rest}");
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> FileTree {
        let mut tree = FileTree::default();
        tree.add("/a/b/one", "1\n");
        tree.add("/a/b2", "2\n");
        tree.add_made("/a/c/made", || "made\n".to_owned());
        tree.add_alias("/z/link", "/a/b");
        tree
    }

    #[test]
    fn files_folders_and_links() {
        let tree = tree();
        assert_eq!(tree.read("/a//b/./one"), Ok(b"1\n".to_vec()));
        assert_eq!(tree.read("/z/link/one"), Ok(b"1\n".to_vec()));
        assert_eq!(tree.read("/a/c/made"), Ok(b"made\n".to_vec()));
        assert_eq!(tree.list("/a/"), Ok(vec!["b".to_owned(), "b2".to_owned(), "c".to_owned()]));
        assert_eq!(tree.list("/z"), Ok(vec!["link".to_owned()]));
        assert_eq!(tree.list("/z/link"), Ok(vec!["one".to_owned()]));
    }

    /// A name that another one begins with is another name, of a folder as of a link.
    #[test]
    fn names_are_compared_as_wholes() {
        let tree = tree();
        assert_eq!(tree.read("/a/b/one/more"), Err(Errno::ENOENT));
        assert_eq!((tree.list("/a/b/on"), tree.read("/a/b/on")), (Err(Errno::ENOENT), Err(Errno::ENOENT)));
        assert_eq!(
            (tree.read("/z/link"), tree.read("/z/linked/one")),
            (Err(Errno::EISDIR), Err(Errno::ENOENT))
        );
        assert_eq!(tree.list("/a/b"), Ok(vec!["one".to_owned()]));
        assert_eq!(tree.list(""), Ok(vec!["a".to_owned(), "z".to_owned()]));
        assert_eq!(tree.read("a/b/./one"), tree.read("/./a///b/one"));
        assert_eq!(tree.read("/a/.b/one"), Err(Errno::ENOENT));
    }

    #[test]
    fn errors_are_those_of_a_file_system() {
        let tree = tree();
        assert_eq!(tree.read("/a/b"), Err(Errno::EISDIR));
        assert_eq!(tree.read("/a/none"), Err(Errno::ENOENT));
        assert_eq!(tree.list("/a/b2"), Err(Errno::ENOTDIR));
        assert_eq!(tree.list("/nothing"), Err(Errno::ENOENT));
    }
}
