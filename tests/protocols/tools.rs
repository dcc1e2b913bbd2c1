//! Programs of other people, run against a node.

use gwctl_testkit::{Cluster, Node, NodeOptions, free_ports, get, patch, post, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// Runs a program to its end with what it is to read; standard output.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// What a program wrote; it must end well.
pub fn said(program: &str, arguments: &[&str], input: &str) -> String {
    let output = run(program, arguments, input);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The path of a program of the machine, also of those that only root has on its path. Without it the test is left out,
/// which it says; GWCTL_PEERS=required makes that a failure.
pub fn program(name: &str) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = path.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    let required = std::env::var("GWCTL_PEERS").is_ok_and(|value| value == "required");
    assert!(found.is_some() || !required, "there is no {name}");
    if found.is_none() {
        eprintln!("left out: there is no {name}");
    }
    found.map(|path| path.display().to_string())
}

/// A server that ends with the test.
pub struct Server(Child);

impl Server {
    pub fn start(program: &str, arguments: &[&str], port: u16) -> Server {
        let mut command = Command::new(program);
        let command = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server(command.spawn().unwrap());
        wait_until("the server to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx ends its workers on SIGTERM only.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A node with a plain port and one with TLS, both for HTTP/2 as well.
pub struct Stage {
    pub cluster: Cluster,
    pub node: Node,
    pub plain: u16,
    pub secure: u16,
}

impl Stage {
    pub fn new(settings: impl FnOnce(NodeOptions) -> NodeOptions) -> Stage {
        let cluster = Cluster::new(GWCTL);
        let [plain, secure] = free_ports();
        let options = cluster.options("node", "traditional").set("nginx_worker_processes", 2);
        let listen = format!("127.0.0.1:{plain} http2, 127.0.0.1:{secure} ssl http2");
        let node = cluster.start(&settings(options.set("proxy_listen", listen)));
        Stage { cluster, node, plain, secure }
    }

    /// Makes an entity; its id.
    pub fn make(&self, path: &str, row: &Value) -> String {
        let answer = post(self.node.admin(), path, row);
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub fn change(&self, path: &str, row: &Value) {
        let answer = patch(self.node.admin(), path, row);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }

    /// A service named `s` with a route `r` for everything; fields of both added.
    pub fn serve(&self, service: Value, route: Value) {
        let merged = |mut row: Value, more: Value| {
            row.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            row
        };
        self.make("/services", &merged(json!({"name": "s"}), service));
        self.make("/services/s/routes", &merged(json!({"name": "r", "paths": ["/"], "strip_path": false}), route));
        self.settled();
    }

    /// Waits until what was written is in force: a route written last answers.
    pub fn settled(&self) {
        let marker = format!("/marker-{}", self.make("/consumers", &json!({"custom_id": random()})));
        let service = json!({"name": marker.replace('/', ""), "host": "127.0.0.1", "port": 1, "retries": 0});
        let service = self.make("/services", &service);
        self.make(&format!("/services/{service}/routes"), &json!({"paths": [marker]}));
        wait_until("the configuration to be in force", || get(self.plain, &marker).status == 502);
    }

    /// A file below the folder of the stage.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.cluster.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn random() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:x}", RandomState::new().hash_one(0))
}

/// Certificates made with openssl: an authority, two below it, and leaves of the last.
pub struct Chain {
    pub root: String,
    /// The leaf and both authorities between it and the root, as a server sends them.
    pub server: (PathBuf, PathBuf),
    pub client: (String, String),
}

impl Chain {
    pub fn new(stage: &Stage, name: &str) -> Chain {
        let path = |file: &str| stage.cluster.path(file).display().to_string();
        let issue = |name: &str, subject: &str, by: Option<&str>, extension: &str| {
            let extensions = stage.file(&format!("{name}.ext"), extension).display().to_string();
            let (key, request, certificate) =
                (path(&format!("{name}.key")), path(&format!("{name}.csr")), path(&format!("{name}.crt")));
            let subject = format!("/CN={subject}");
            let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
            let asked = [&["req", "-subj", &subject, "-keyout", &key, "-out", &request], &curve[..]].concat();
            said("openssl", &asked, "");
            let (by_certificate, by_key) = match by {
                Some(by) => (path(&format!("{by}.crt")), path(&format!("{by}.key"))),
                None => (certificate.clone(), key.clone()),
            };
            let mut signed = vec!["x509", "-req", "-in", &request, "-out", &certificate, "-days", "2", "-extfile"];
            signed.push(&extensions);
            match by {
                Some(_) => signed.extend(["-CA", &by_certificate, "-CAkey", &by_key, "-CAcreateserial"]),
                None => signed.extend(["-signkey", &by_key]),
            }
            said("openssl", &signed, "");
        };
        let read = |file: &str| std::fs::read_to_string(path(file)).unwrap();
        let authority = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
        issue("root", "root", None, authority);
        issue("middle", "middle", Some("root"), authority);
        issue("lower", "lower", Some("middle"), authority);
        issue("server", name, Some("lower"), &format!("subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\n"));
        issue("client", "client", Some("root"), "extendedKeyUsage=clientAuth\n");
        let whole = [read("server.crt"), read("lower.crt"), read("middle.crt")].concat();
        let server = (stage.file("server.chain", &whole), PathBuf::from(path("server.key")));
        Chain { root: read("root.crt"), server, client: (read("client.crt"), read("client.key")) }
    }
}
