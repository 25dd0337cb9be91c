//! Writes the generated files: `cargo xtask dashboards`.

use std::io;
use std::path::Path;

use bellwether_dashboards::generated;

fn main() -> io::Result<()> {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for file in generated() {
        let path = repository.join(&file.path);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&path, &file.text)?;
        eprintln!("{}", file.path.display());
    }
    Ok(())
}
