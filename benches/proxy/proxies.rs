//! The proxies and their upstream, each as its makers would set it up.

use crate::parts::Load;
use std::fmt::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the proxy under test listens.
pub(crate) const ADDRESS: &str = "127.0.0.1:18000";
pub(crate) const TLS_ADDRESS: &str = "127.0.0.1:18443";
const PORT: u16 = 18000;
const TLS_PORT: u16 = 18443;
const UPSTREAM_PORT: u16 = 18001;
/// Key of the only consumer; sent to all proxies alike.
pub(crate) const KEY: &str = "benchmark";
const ROUTES: usize = 1000;
const LARGE: usize = 100 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx,
    /// Which writes the headers that Kong and gwctl write.
    NginxAsKong,
    Haproxy,
    Gwctl,
    GwctlKeyAuth,
    GwctlKeyAuthRateLimiting,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::NginxAsKong => "nginx, with Kong's headers",
            Self::Haproxy => "HAProxy",
            Self::Gwctl => "gwctl",
            Self::GwctlKeyAuth => "gwctl, key-auth",
            Self::GwctlKeyAuthRateLimiting => "gwctl, key-auth + rate-limiting local",
        }
    }
}

/// What all runs share: the folder, the program, a certificate, the upstream.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    program: PathBuf,
    _upstream: Running,
}

impl Site {
    pub(crate) fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let upstream = upstream(folder.path());
        certificate(folder.path());
        Site { program: program(), folder, _upstream: upstream }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The program as it ships.
fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("GWCTL") {
        return path.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let status = Command::new(root.join("scripts/dist")).status().unwrap();
    assert!(status.success(), "scripts/dist failed");
    root.join("target/dist/gwctl")
}

/// A certificate that signs itself, and the same with its key in one file.
fn certificate(folder: &Path) {
    let (key, cert) = (folder.join("key.pem"), folder.join("cert.pem"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", "/CN=localhost", "-keyout"]).arg(&key).arg("-out").arg(&cert);
    let out = command.output().unwrap();
    assert!(out.status.success(), "openssl: {}", String::from_utf8_lossy(&out.stderr));
    let both = std::fs::read_to_string(&cert).unwrap() + &std::fs::read_to_string(&key).unwrap();
    std::fs::write(folder.join("both.pem"), both).unwrap();
}

/// A process that ends with its value.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn start(mut command: Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let mut running = Self { child };
        running.wait(port);
        running
    }

    /// Waits until it listens.
    fn wait(&mut self, port: u16) {
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "the process that should listen on port {port} ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nothing listens on port {port}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // nginx takes its workers along when it is asked to end; killing it would leave them.
        let _ = Command::new("kill").args(["-TERM", &self.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

fn on_core(core: &str, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]);
    command
}

/// nginx that answers with 20 bytes or a file.
fn upstream(folder: &Path) -> Running {
    let large = folder.join("large");
    std::fs::write(&large, vec![b'x'; LARGE]).unwrap();
    let body = format!(
        "sendfile on;\nserver {{ listen 127.0.0.1:{UPSTREAM_PORT} backlog=4096;\n\
         location ~ /large$ {{ alias {}; }}\nlocation / {{ return 200 '01234567890123456789'; }} }}",
        large.display()
    );
    nginx(folder, "upstream", "1", &body, UPSTREAM_PORT)
}

fn nginx(folder: &Path, name: &str, core: &str, servers: &str, port: u16) -> Running {
    let own = folder.join(name);
    std::fs::create_dir_all(&own).unwrap();
    let text = format!(
        "daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {dir}/pid; error_log {dir}/error.log;\n\
         events {{ worker_connections 16000; }}\n\
         http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;\n\
         fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;\n{servers}\n}}\n",
        dir = own.display()
    );
    let path = own.join("nginx.conf");
    std::fs::write(&path, text).unwrap();
    let mut command = on_core(core, "nginx");
    command.arg("-e").arg(own.join("error.log")).arg("-c").arg(&path);
    Running::start(command, port)
}

pub(crate) fn start(kind: Kind, site: &Site, load: Load) -> Running {
    let mut running = begin(kind, site, load);
    // It listens for TLS as well, and may begin to do so a little later.
    running.wait(TLS_PORT);
    running
}

fn begin(kind: Kind, site: &Site, load: Load) -> Running {
    match kind {
        Kind::Nginx => nginx(site.path(), "proxy", "0", &nginx_servers(site.path(), load, ""), PORT),
        Kind::NginxAsKong => nginx(site.path(), "proxy", "0", &nginx_servers(site.path(), load, KONG_HEADERS), PORT),
        Kind::Haproxy => haproxy(site.path()),
        Kind::Gwctl => gwctl(site, &[]),
        Kind::GwctlKeyAuth => gwctl(site, &["key-auth"]),
        Kind::GwctlKeyAuthRateLimiting => gwctl(site, &["key-auth", "rate-limiting"]),
    }
}

/// What Kong has a request and a response say beyond `Host` and `X-Forwarded-For`.
const KONG_HEADERS: &str = "proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host; \
    proxy_set_header X-Forwarded-Port $server_port; proxy_set_header X-Forwarded-Path $request_uri; \
    proxy_set_header X-Forwarded-Prefix $request_uri; proxy_set_header X-Real-IP $remote_addr; \
    proxy_set_header Via '1.1 nginx'; proxy_set_header X-Kong-Request-Id $request_id; \
    add_header X-Kong-Upstream-Latency 0; add_header X-Kong-Proxy-Latency 0; add_header Via '1.1 nginx'; \
    add_header X-Kong-Request-Id $request_id;";

fn nginx_servers(folder: &Path, load: Load, headers: &str) -> String {
    let mut text = format!(
        "upstream up {{ server 127.0.0.1:{UPSTREAM_PORT}; keepalive 512; keepalive_requests 100000000; }}\n\
         ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;\n",
        dir = folder.display()
    );
    if load == Load::Large {
        text += "proxy_buffer_size 32k; proxy_buffers 8 32k; proxy_busy_buffers_size 64k;\n";
    }
    let _ = writeln!(text, "server {{ listen {ADDRESS} backlog=16000; listen {TLS_ADDRESS} ssl backlog=4096;");
    for number in 0..ROUTES {
        let _ = writeln!(
            text,
            "location /bench/{number}/ {{ proxy_pass http://up/; proxy_http_version 1.1; proxy_set_header Connection ''; \
             proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; {headers} }}"
        );
    }
    text + "}\n"
}

fn haproxy(folder: &Path) -> Running {
    let map: String = (0..ROUTES).fold(String::new(), |mut map, number| {
        let _ = writeln!(map, "/bench/{number}/ up");
        map
    });
    let (map_path, path) = (folder.join("routes.map"), folder.join("haproxy.cfg"));
    std::fs::write(&map_path, map).unwrap();
    let text = format!(
        "global\n nbthread 1\n maxconn 9900\n ssl-default-bind-options ssl-min-ver TLSv1.2\ndefaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 5s\n \
         option forwardfor\n http-reuse always\nfrontend in\n bind {ADDRESS}\n bind {TLS_ADDRESS} ssl crt {}\n use_backend %[path,map_beg({})]\n\
         backend up\n server one 127.0.0.1:{UPSTREAM_PORT} pool-max-conn 512\n",
        folder.join("both.pem").display(),
        map_path.display()
    );
    std::fs::write(&path, text).unwrap();
    let mut command = on_core("0", "haproxy");
    command.arg("-db").arg("-f").arg(&path);
    Running::start(command, PORT)
}

/// A node without a store, from a file.
fn gwctl(site: &Site, plugins: &[&str]) -> Running {
    let folder = site.path();
    let mut text =
        format!("_format_version: '3.0'\nservices:\n- name: up\n  url: http://127.0.0.1:{UPSTREAM_PORT}\n  routes:\n");
    for number in 0..ROUTES {
        let _ = writeln!(text, "  - name: r{number}\n    paths: [/bench/{number}/]");
    }
    let _ = writeln!(text, "consumers:\n- username: bench\n  keyauth_credentials:\n  - key: {KEY}");
    if !plugins.is_empty() {
        text += "plugins:\n";
    }
    for plugin in plugins {
        let config = if *plugin == "rate-limiting" { "\n  config: {hour: 100000000, policy: local}" } else { "" };
        let _ = writeln!(text, "- name: {plugin}{config}");
    }
    let path = folder.join("gwctl.yaml");
    std::fs::write(&path, text).unwrap();
    let prefix = tempfile::tempdir_in(folder).unwrap().keep();
    let mut command = on_core("0", &site.program.to_string_lossy());
    command
        .arg("start")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KONG_PREFIX", prefix)
        .env("KONG_DATABASE", "off")
        .env("KONG_DECLARATIVE_CONFIG", &path)
        .env("KONG_PROXY_LISTEN", format!("{ADDRESS}, {TLS_ADDRESS} ssl"))
        .env("KONG_SSL_CERT", folder.join("cert.pem"))
        .env("KONG_SSL_CERT_KEY", folder.join("key.pem"))
        .env("KONG_ADMIN_LISTEN", "off")
        .env("KONG_STATUS_LISTEN", "off")
        .env("KONG_LOG_LEVEL", "error")
        .env("KONG_NGINX_WORKER_PROCESSES", "1");
    Running::start(command, PORT)
}
