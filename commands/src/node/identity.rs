//! Who the node is: its prefix folder, its id, its host name.

use crate::failure::Failure;
use gwctl_conf::NodeConf;
use std::io::Write as _;
use std::path::Path;
use uuid::Uuid;

/// File in the prefix that keeps the id over restarts. Source: Kong 3.9.1, `<prefix>/kong.id`.
const ID_FILE: &str = "kong.id";

/// Id and host name of the node.
#[derive(Debug, Clone)]
pub(crate) struct NodeIdentity {
    pub(crate) id: String,
    pub(crate) hostname: String,
}

/// Makes the prefix folder, readable by its owner only.
pub(crate) fn make_prefix(prefix: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(prefix);
    made.map_err(|error| {
        Failure::because(format!("cannot make the prefix folder {}", prefix.display()), &error)
            .hint("set prefix to a folder this user can write, for example -p ~/.local/state/gwctl")
    })
}

impl NodeIdentity {
    /// The id of the settings, else the one in the prefix, else a new one, which is kept there.
    pub(crate) fn of(conf: &NodeConf) -> Result<Self, Failure> {
        let hostname = hostname::get().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let id = match &conf.node_id {
            Some(id) => id.clone(),
            None => stored_id(&conf.prefix.join(ID_FILE))?,
        };
        Ok(Self { id, hostname })
    }
}

fn stored_id(file: &Path) -> Result<String, Failure> {
    if let Ok(text) = std::fs::read_to_string(file)
        && let Ok(id) = Uuid::try_parse(text.trim())
    {
        return Ok(id.to_string());
    }
    let id = Uuid::new_v4().to_string();
    write_whole(file, &id).map_err(|error| {
        Failure::because(format!("cannot keep the node id in {}", file.display()), &error)
            .hint("the prefix folder must be writable and its disk must have space")
    })?;
    Ok(id)
}

/// Writes beside the file and renames, so that a crash never leaves half an id.
fn write_whole(file: &Path, text: &str) -> std::io::Result<()> {
    let beside = file.with_extension("new");
    let mut out = std::fs::File::create(&beside)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&beside, file)
}
