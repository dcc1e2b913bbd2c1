//! The proxies and their upstream, each as its makers would set it up.

use std::fmt::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the proxy under test listens.
pub(crate) const ADDRESS: &str = "127.0.0.1:18000";
const UPSTREAM_PORT: u16 = 18001;
/// Key of the only consumer; sent to all proxies alike.
pub(crate) const KEY: &str = "benchmark";
const ROUTES: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx,
    Haproxy,
    Gwctl,
    GwctlKeyAuth,
    GwctlKeyAuthRateLimiting,
}

/// In the order they are run; the first is what the others are measured by.
pub(crate) const KINDS: [Kind; 5] =
    [Kind::Nginx, Kind::Haproxy, Kind::Gwctl, Kind::GwctlKeyAuth, Kind::GwctlKeyAuthRateLimiting];

/// A process that ends with its value.
pub(crate) struct Running {
    child: Child,
    pub(crate) port: u16,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn start(mut command: Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Self { child, port };
            }
            assert!(child.try_wait().unwrap().is_none(), "{command:?} ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{command:?} does not listen on port {port}");
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

/// nginx that answers with 20 bytes.
pub(crate) fn upstream(folder: &Path) -> Running {
    let body = format!(
        "server {{ listen 127.0.0.1:{UPSTREAM_PORT} backlog=4096; location / {{ return 200 '01234567890123456789'; }} }}"
    );
    nginx(folder, "upstream", "1", &body, UPSTREAM_PORT)
}

fn nginx(folder: &Path, name: &str, core: &str, servers: &str, port: u16) -> Running {
    let own = folder.join(name);
    std::fs::create_dir_all(&own).unwrap();
    let text = format!(
        "daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
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

pub(crate) fn start(kind: Kind, folder: &Path, upstream: u16) -> Running {
    let port = ADDRESS.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap();
    match kind {
        Kind::Nginx => nginx(folder, "proxy", "0", &nginx_servers(upstream), port),
        Kind::Haproxy => haproxy(folder, upstream, port),
        Kind::Gwctl => gwctl(folder, upstream, port, &[]),
        Kind::GwctlKeyAuth => gwctl(folder, upstream, port, &["key-auth"]),
        Kind::GwctlKeyAuthRateLimiting => gwctl(folder, upstream, port, &["key-auth", "rate-limiting"]),
    }
}

fn nginx_servers(upstream: u16) -> String {
    let mut text =
        format!("upstream up {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 100000000; }}\n");
    let _ = writeln!(text, "server {{ listen {ADDRESS} backlog=4096;");
    for number in 0..ROUTES {
        let _ = writeln!(
            text,
            "location /bench/{number}/ {{ proxy_pass http://up/; proxy_http_version 1.1; proxy_set_header Connection ''; \
             proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }}"
        );
    }
    text + "}\n"
}

fn haproxy(folder: &Path, upstream: u16, port: u16) -> Running {
    let map: String = (0..ROUTES).fold(String::new(), |mut map, number| {
        let _ = writeln!(map, "/bench/{number}/ up");
        map
    });
    let (map_path, path) = (folder.join("routes.map"), folder.join("haproxy.cfg"));
    std::fs::write(&map_path, map).unwrap();
    let text = format!(
        "global\n nbthread 1\n maxconn 4096\ndefaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 5s\n \
         option forwardfor\n http-reuse always\nfrontend in\n bind {ADDRESS}\n use_backend %[path,map_beg({})]\n\
         backend up\n server one 127.0.0.1:{upstream} pool-max-conn 128\n",
        map_path.display()
    );
    std::fs::write(&path, text).unwrap();
    let mut command = on_core("0", "haproxy");
    command.arg("-db").arg("-f").arg(&path);
    Running::start(command, port)
}

/// A node without a store, from a file.
fn gwctl(folder: &Path, upstream: u16, port: u16, plugins: &[&str]) -> Running {
    let mut text =
        format!("_format_version: '3.0'\nservices:\n- name: up\n  url: http://127.0.0.1:{upstream}\n  routes:\n");
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
    let program = std::env::var("GWCTL").unwrap_or_else(|_| env!("CARGO_BIN_EXE_gwctl").to_owned());
    let prefix = tempfile::tempdir_in(folder).unwrap().keep();
    let mut command = on_core("0", &program);
    command
        .arg("start")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KONG_PREFIX", prefix)
        .env("KONG_DATABASE", "off")
        .env("KONG_DECLARATIVE_CONFIG", &path)
        .env("KONG_PROXY_LISTEN", format!("127.0.0.1:{port}"))
        .env("KONG_ADMIN_LISTEN", "off")
        .env("KONG_STATUS_LISTEN", "off")
        .env("KONG_LOG_LEVEL", "error")
        .env("KONG_NGINX_WORKER_PROCESSES", "1");
    Running::start(command, port)
}
