//! Changes under load: what requests notice of them.

use crate::process::quantile;
use crate::{Bench, path, serves};
use gwctl_testkit::read_answer;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Connections under load, and requests a second on each.
const CONNECTIONS: usize = 8;
const RATE: u32 = 125;
const ROUTES: usize = 1000;

pub(crate) fn measure(rate: usize, time: Duration) {
    let bench = Bench::with_routes(ROUTES);
    let dp = bench.cluster.start(&bench.data_plane("dp"));
    serves(&dp, &path(ROUTES - 1));
    let (mut quiet, failed) = load(dp.proxy(), time);
    println!("{} requests a second for {} s", RATE as usize * CONNECTIONS, time.as_secs());
    println!(
        "without changes: p50 {:.2} ms, p99 {:.2} ms, {failed} failed",
        quantile(&mut quiet, 0.5),
        quantile(&mut quiet, 0.99)
    );
    let (mut busy, failed) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(dp.proxy(), time));
        let (began, pause) = (Instant::now(), time.div_f64(time.as_secs_f64() * rate as f64));
        for number in 0..rate * time.as_secs() as usize {
            wait_until(began + pause * number as u32);
            bench.route(&format!("/storm/{number}"));
        }
        loading.join().unwrap()
    });
    println!(
        "with {rate} changes a second: p50 {:.2} ms, p99 {:.2} ms, {failed} failed",
        quantile(&mut busy, 0.5),
        quantile(&mut busy, 0.99)
    );
    println!("p99 ratio: {:.2} (wanted: under 1.5)", quantile(&mut busy, 0.99) / quantile(&mut quiet, 0.99));
}

fn wait_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Times of requests, counted from when each was meant to be sent, and how many failed.
fn load(port: u16, time: Duration) -> (Vec<Duration>, usize) {
    let clients: Vec<_> =
        (0..CONNECTIONS).map(|number| std::thread::spawn(move || client(port, number, time))).collect();
    clients.into_iter().map(|client| client.join().unwrap()).fold(
        (Vec::new(), 0),
        |(mut all, failed), (times, more)| {
            all.extend(times);
            (all, failed + more)
        },
    )
}

fn client(port: u16, number: usize, time: Duration) -> (Vec<Duration>, usize) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut writer, began, mut times, mut failed) = (stream, Instant::now(), Vec::new(), 0);
    for turn in 0..RATE * time.as_secs() as u32 {
        let due = began + Duration::from_secs(1) * turn / RATE;
        wait_until(due);
        let target = path((turn as usize * CONNECTIONS + number) % ROUTES);
        let sent = writer.write_all(format!("GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes());
        match sent.and_then(|()| read_answer(&mut reader)) {
            Ok(answer) if answer.status == 200 => times.push(due.elapsed()),
            _ => failed += 1,
        }
    }
    (times, failed)
}
