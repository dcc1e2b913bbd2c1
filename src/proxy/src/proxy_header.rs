//! The PROXY header, versions 1 and 2: what a balancer in front says of the connection that it passes on.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Begins a header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest header of version 1, its line end included.
const LONGEST_LINE: usize = 107;

/// Reads the header and nothing that follows it. Gives the address of the client; None when the balancer does not say,
/// as in its own probes.
pub(crate) async fn read_proxy_header(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    // No header of either version is shorter.
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    let client = if start == SIGNATURE {
        let mut fixed = [0; 4];
        stream.read_exact(&mut fixed).await?;
        let [version, family, high, low] = fixed;
        let mut rest = vec![0; usize::from(u16::from_be_bytes([high, low]))];
        stream.read_exact(&mut rest).await?;
        second_version(version, family, &rest)
    } else if start.starts_with(b"PROXY ") {
        let mut line = start.to_vec();
        read_line(stream, &mut line).await?;
        first_version(&line)
    } else {
        Err("there is no PROXY header")
    };
    client.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))
}

/// Reads to the end of the line: up to it every byte that has come belongs to the header.
async fn read_line(stream: &mut TcpStream, line: &mut Vec<u8>) -> io::Result<()> {
    let mut seen = [0; LONGEST_LINE];
    while line.len() < LONGEST_LINE {
        let peeked = stream.peek(&mut seen[..LONGEST_LINE - line.len()]).await?;
        let end = seen[..peeked].iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(peeked);
        if taken == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        stream.read_exact(&mut seen[..taken]).await?;
        line.extend_from_slice(&seen[..taken]);
        if end.is_some() {
            return Ok(());
        }
    }
    Ok(())
}

type Client = Result<Option<SocketAddr>, &'static str>;

/// `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443`, or `PROXY UNKNOWN` with anything behind it.
fn first_version(line: &[u8]) -> Client {
    let line = line.strip_suffix(b"\r\n").ok_or("the line of the PROXY header does not end")?;
    let line = std::str::from_utf8(line).map_err(|_| "the PROXY header is not text")?;
    let words: Vec<_> = line.split(' ').collect();
    let port = |text: &str| text.parse::<u16>().map_err(|_| "the PROXY header has no port where one belongs");
    let fault = "the PROXY header has no address where one belongs";
    match words.as_slice() {
        ["PROXY", "UNKNOWN", ..] => Ok(None),
        ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, source_port, destination_port] => {
            let address = |text: &str| match *family {
                "TCP4" => text.parse::<Ipv4Addr>().map(IpAddr::from).map_err(|_| fault),
                _ => text.parse::<Ipv6Addr>().map(IpAddr::from).map_err(|_| fault),
            };
            address(destination)?;
            port(destination_port)?;
            Ok(Some(SocketAddr::new(address(source)?, port(source_port)?)))
        }
        _ => Err("the PROXY header has not the six parts that it must have"),
    }
}

/// What follows the signature: version and command, family, then the addresses and whatever the balancer adds.
fn second_version(version: u8, family: u8, rest: &[u8]) -> Client {
    match version {
        // A connection of the balancer itself.
        0x20 => return Ok(None),
        0x21 => {}
        _ => return Err("the PROXY header is of an unknown version or command"),
    }
    let short = "the PROXY header is too short for its addresses";
    match family >> 4 {
        1 => {
            let [a, b, c, d, _, _, _, _, high, low, ..] = *rest else { return Err(short) };
            rest.get(..12).ok_or(short)?;
            Ok(Some((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])).into()))
        }
        2 => {
            let addresses: &[u8; 36] = rest.first_chunk().ok_or(short)?;
            let (source, _) = addresses.split_first_chunk::<16>().ok_or(short)?;
            let port = u16::from_be_bytes([addresses[32], addresses[33]]);
            Ok(Some((Ipv6Addr::from(*source), port).into()))
        }
        // Unspecified, or a socket of the balancer's machine.
        0 | 3 => Ok(None),
        _ => Err("the PROXY header is of an unknown family"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn lines_name_the_client() {
        for (line, expected) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", Some("192.0.2.1:56324")),
            ("PROXY TCP6 2001:db8::1 ::1 1 2\r\n", Some("[2001:db8::1]:1")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
        ] {
            assert_eq!(first_version(line.as_bytes()), Ok(expected.map(address)), "{line}");
        }
    }

    #[test]
    fn bad_lines_are_refused() {
        for line in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
            "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
        ] {
            assert!(first_version(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn binary_headers_name_the_client() {
        let four = [192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 0x04, 1, 187];
        assert_eq!(second_version(0x21, 0x11, &four), Ok(Some(address("192.0.2.1:56324"))));
        assert_eq!(
            second_version(0x21, 0x11, &[four.as_slice(), &[4, 0, 1, 0]].concat()).unwrap().unwrap().port(),
            56324
        );
        assert!(second_version(0x21, 0x11, &four[..11]).is_err());
        let mut six = [0; 36];
        (six[15], six[33]) = (1, 9);
        assert_eq!(second_version(0x21, 0x21, &six), Ok(Some(address("[::1]:9"))));
        assert!(second_version(0x21, 0x21, &six[..35]).is_err());
        assert_eq!(second_version(0x20, 0, &[]), Ok(None));
        assert_eq!(second_version(0x21, 0x31, &[0; 216]), Ok(None));
        assert!(second_version(0x11, 0x11, &four).is_err());
    }

    async fn read(bytes: &[u8]) -> (io::Result<Option<SocketAddr>>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let bytes = bytes.to_vec();
        tokio::spawn(async move {
            client.set_nodelay(true).unwrap();
            for part in bytes.chunks(7) {
                client.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let outcome = read_proxy_header(&mut stream).await;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        (outcome, rest)
    }

    #[tokio::test]
    async fn what_follows_the_header_is_left_on_the_connection() {
        let (client, rest) = read(b"PROXY TCP4 192.0.2.1 192.0.2.2 5 443\r\nGET / HTTP/1.1\r\n").await;
        assert_eq!((client.unwrap(), rest.as_slice()), (Some(address("192.0.2.1:5")), &b"GET / HTTP/1.1\r\n"[..]));
        let header = [&SIGNATURE[..], &[0x21, 0x11, 0, 14, 192, 0, 2, 1, 192, 0, 2, 2, 0, 5, 1, 187, 0, 0], b"rest"];
        let (client, rest) = read(&header.concat()).await;
        assert_eq!((client.unwrap(), rest.as_slice()), (Some(address("192.0.2.1:5")), &b"rest"[..]));
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        let endless = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PROXY TCP4", &SIGNATURE, &endless] {
            assert!(read(bytes).await.0.is_err());
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_the_parser_panic(line in prop::collection::vec(any::<u8>(), 0..120), rest in prop::collection::vec(any::<u8>(), 0..64), version: u8, family: u8) {
            let _ = first_version(&line);
            let _ = first_version(&[b"PROXY TCP4 ".as_slice(), &line, b"\r\n"].concat());
            if let Ok(Some(client)) = second_version(version, family, &rest) {
                prop_assert_eq!((version, client.is_ipv4()), (0x21, family >> 4 == 1));
            }
        }
    }
}
