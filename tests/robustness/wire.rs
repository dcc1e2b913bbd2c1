//! Bytes as nobody should send them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for a node to say or end something.
const PATIENCE: Duration = gwctl_testkit::LIMIT;

/// A connection to a port of loopback.
pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes and gives all that comes back until the node ends the connection; panics when it does not.
pub(crate) fn exchange(port: u16, bytes: &[u8]) -> String {
    let mut stream = connect(port);
    // The node may end the connection before it has taken everything.
    let _ = stream.write_all(bytes);
    until_end(&mut stream)
}

/// Everything the peer still says until it ends the connection.
pub(crate) fn until_end(stream: &mut impl Read) -> String {
    let (mut answer, mut piece) = (Vec::new(), [0; 65536]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                panic!("the connection stays open after: {}", String::from_utf8_lossy(&answer));
            }
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Status of the first answer in the text; 0 when there is none.
pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
}
