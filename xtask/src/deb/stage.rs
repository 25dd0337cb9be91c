//! Puts the files of the Debian package where they are installed, below a folder.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::metadata::Metadata;

/// The prefixes of assets that are built, as in the manifest.
const COMMAND: &str = "../../target/release/bellwether";
const GENERATED: &str = "../../target/package/";
/// The scripts of the package, seen from the manifest.
const SCRIPTS: &str = "../../packaging/debian";
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Where the files come from.
pub(super) struct Sources<'a> {
    /// The folder of the manifest.
    pub(super) manifest: &'a Path,
    pub(super) command: &'a Path,
    /// The folder that `bellwether install-files` has written.
    pub(super) generated: &'a Path,
}

impl Sources<'_> {
    /// Writes all files of the package below `root`.
    pub(super) fn stage(&self, metadata: &Metadata, control: &str, root: &Path) -> io::Result<()> {
        for (pattern, target, mode) in &metadata.assets {
            let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
            for file in self.files(pattern)? {
                // The file with the command may have any name.
                let named = if pattern == COMMAND { Path::new(COMMAND) } else { file.as_path() };
                let name = named.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                let target = match target.ends_with('/') {
                    true => root.join(target).join(name),
                    false => root.join(target),
                };
                install(&file, &target, mode)?;
                if target.extension().is_some_and(|extension| extension == "1") {
                    gzip(&target)?;
                }
            }
        }
        let unit = format!("{}.service", metadata.name);
        install(
            &self.manifest.join(&metadata.systemd_units.unit_scripts).join(&unit),
            &root.join("usr/lib/systemd/system").join(&unit),
            0o644,
        )?;
        self.write_copyright(metadata, root)?;
        self.write_control(metadata, control, root)
    }

    /// The files of an asset; `*` is supported in the name. A pattern without a file is an error: the package would lack it.
    fn files(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        if pattern == COMMAND {
            return Ok(vec![self.command.to_owned()]);
        }
        let path = match pattern.strip_prefix(GENERATED) {
            Some(rest) => self.generated.join(rest),
            None => self.manifest.join(pattern),
        };
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
        let Some((start, end)) = name.split_once('*') else { return Ok(vec![path]) };
        let mut files = Vec::new();
        for entry in fs::read_dir(path.with_file_name(""))? {
            let found = entry?.path();
            let name = found.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end) {
                files.push(found);
            }
        }
        if files.is_empty() {
            return Err(io::Error::other(format!("no file is named {}", path.display())));
        }
        files.sort();
        Ok(files)
    }

    fn write_copyright(&self, metadata: &Metadata, root: &Path) -> io::Result<()> {
        let mut text = format!("{}\n", metadata.copyright);
        for licence in LICENCES {
            let licence = fs::read_to_string(self.manifest.join("../..").join(licence))?;
            write!(text, "\n{licence}").expect("writing to a String cannot fail");
        }
        let file = root.join("usr/share/doc").join(&metadata.name).join("copyright");
        fs::write(&file, text)?;
        fs::set_permissions(&file, Permissions::from_mode(0o644))
    }

    fn write_control(&self, metadata: &Metadata, control: &str, root: &Path) -> io::Result<()> {
        let size = size(root)?.div_ceil(1024);
        let folder = root.join("DEBIAN");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("control"), format!("{control}Installed-Size: {size}\n"))?;
        fs::write(folder.join("conffiles"), metadata.conf_files.join("\n") + "\n")?;
        for script in fs::read_dir(self.manifest.join(SCRIPTS))? {
            let script = script?;
            install(&script.path(), &folder.join(script.file_name()), 0o755)?;
        }
        open_folders(root)
    }
}

fn install(source: &Path, target: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir_all(target.with_file_name(""))?;
    fs::copy(source, target)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", source.display())))?;
    fs::set_permissions(target, Permissions::from_mode(mode))
}

/// Debian's man pages are compressed, without a time.
fn gzip(file: &Path) -> io::Result<()> {
    let status = Command::new("gzip").args(["-9", "--no-name"]).arg(file).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("gzip: {status}"))) }
}

/// Every user may enter the folders, whatever the umask of the build is.
fn open_folders(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

fn size(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}
