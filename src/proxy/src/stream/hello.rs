//! The beginning of a TLS connection, read without answering it.

use rustls::server::Acceptor;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest beginning that is read: a hello of the greatest length there is, in records of some size.
const LIMIT: usize = 80 * 1024;

/// Reads until the client's hello is complete and gives the server name in it. What was read is added to `start`.
pub(crate) async fn read_hello(stream: &mut TcpStream, start: &mut Vec<u8>) -> io::Result<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut given = 0;
    loop {
        while given < start.len() {
            let read = acceptor.read_tls(&mut &start[given..])?;
            given += read;
            match acceptor.accept() {
                Ok(Some(accepted)) => {
                    return Ok(accepted.client_hello().server_name().map(str::to_ascii_lowercase));
                }
                Ok(None) if read > 0 => {}
                Ok(None) => return Err(io::ErrorKind::InvalidData.into()),
                Err((error, mut alert)) => {
                    let mut bytes = Vec::new();
                    alert.write_all(&mut bytes)?;
                    stream.write_all(&bytes).await?;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
        if start.len() > LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        start.reserve(2048);
        if stream.read_buf(start).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
