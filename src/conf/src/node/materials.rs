//! Certificates and keys that the settings name.

use super::NodeConf;
use crate::keys::{KEYS, Kind};
use crate::material::{Material, Materials};
use crate::problem::{ConfigError, Problem};
use std::io;
use std::path::{Path, PathBuf};

impl NodeConf {
    /// Reads the PEM text of every certificate and key the node uses.
    ///
    /// # Errors
    /// One problem for each file that cannot be read, or that holds no PEM.
    pub fn read_materials(&self, read: &dyn Fn(&Path) -> io::Result<String>) -> Result<Materials, ConfigError> {
        let (mut materials, mut problems) = (Materials::default(), Vec::new());
        for key in KEYS.iter().filter(|key| key.roles.used) {
            let elements = match key.kind {
                Kind::Material | Kind::PrivateKey => self.settings.material(key.name).into_iter().collect(),
                Kind::Materials | Kind::PrivateKeys => self.settings.materials(key.name),
                _ => continue,
            };
            let mut texts = Vec::new();
            for element in elements {
                match element.pem(read) {
                    Ok(text) if text.contains("-----BEGIN") => texts.push((element.place(), text)),
                    Ok(_) => problems.push(self.unreadable(key.name, &element, "holds no PEM (`-----BEGIN ...`)")),
                    Err(error) => problems.push(self.unreadable(key.name, &element, &error.to_string())),
                }
            }
            materials.texts.insert(key.name, texts);
        }
        if problems.is_empty() { Ok(materials) } else { Err(ConfigError { problems }) }
    }

    /// The files that [`NodeConf::read_materials`] reads.
    pub fn material_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for key in KEYS.iter().filter(|key| key.roles.used) {
            let elements = match key.kind {
                Kind::Material | Kind::PrivateKey => self.settings.material(key.name).into_iter().collect(),
                Kind::Materials | Kind::PrivateKeys => self.settings.materials(key.name),
                _ => continue,
            };
            files.extend(elements.into_iter().filter_map(|element| match element {
                Material::Path(path) => Some(path),
                Material::Pem(_) => None,
            }));
        }
        files
    }

    fn unreadable(&self, key: &str, element: &Material, why: &str) -> Problem {
        let fault = format!("cannot load {}: {why}", element.place());
        Problem::new(key, None, self.settings.origin(key), fault)
            .hint("expected the path of a PEM file, PEM text, or base64 of PEM text")
    }
}
