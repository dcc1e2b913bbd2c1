//! Both halves against a peer that does as it likes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use bytes::Bytes;
use gwctl_link::{FrameReader, FrameWriter};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::DuplexStream;

const LIMIT: usize = LEAVING_BYTES as usize;

fn pair(buffer: usize) -> (Connection, Outbox, FrameReader<DuplexStream>, FrameWriter<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(buffer);
    let (connection, outbox) = Connection::open(ours, LIMIT, &[]);
    let (reader, writer) = split(theirs, Role::Client, LIMIT, &[]);
    (connection, outbox, reader, writer)
}

fn ping() -> Frame {
    Frame::Ping(Bytes::from_static(&[7; 100]))
}

/// Answers every frame with one, as a session does, until the connection is lost; gives the reason.
async fn answer_all(mut connection: Connection, outbox: Outbox) -> String {
    loop {
        match connection.event().await {
            Event::Frame(frame) => {
                if let Err(words) = outbox.send(frame).await {
                    return words;
                }
            }
            Event::Written => {}
            Event::Lost(words) => return words,
        }
    }
}

/// Lets everybody go on until nobody can.
async fn settle() {
    for _ in 0..20_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_session_that_waits_for_its_writer_hears_when_that_gives_up() {
    let (connection, outbox, unread, mut writer) = pair(4096);
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let flood = tokio::spawn(async move {
        while writer.send(&ping()).await.is_ok() {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let session = tokio::spawn(answer_all(connection, outbox));
    settle().await;
    assert!(!session.is_finished(), "it waits for a writer that waits for a peer");
    let taken = sent.load(Ordering::Relaxed);
    settle().await;
    assert_eq!(sent.load(Ordering::Relaxed), taken, "the flood is held back");
    // The pipe breaks, as it does for a writer whose time is up.
    flood.abort();
    let _ = flood.await;
    drop(unread);
    let words = session.await.unwrap();
    assert!(words.contains("lost") || words.contains("ended"), "{words}");
}

#[tokio::test]
async fn many_answers_at_once_to_a_peer_that_reads_all_go_out() {
    let (connection, outbox, mut reader, mut writer) = pair(512);
    const COUNT: usize = 2000;
    let flood = tokio::spawn(async move {
        for _ in 0..COUNT {
            writer.send(&ping()).await.unwrap();
        }
        writer
    });
    let session = tokio::spawn(answer_all(connection, outbox));
    for _ in 0..COUNT {
        assert_eq!(reader.receive().await.unwrap(), Some(ping()));
    }
    drop((flood.await.unwrap(), reader));
    session.await.unwrap();
}

#[tokio::test]
async fn every_frame_written_is_told_once() {
    let (mut connection, outbox, mut reader, writer) = pair(1 << 16);
    for _ in 0..5 {
        outbox.send(ping()).await.unwrap();
        reader.receive().await.unwrap();
    }
    for _ in 0..5 {
        assert!(matches!(connection.event().await, Event::Written));
    }
    drop((reader, writer));
    assert!(matches!(connection.event().await, Event::Lost(_)));
}

#[tokio::test]
async fn frames_that_wait_to_be_handled_are_bounded_by_their_bytes() {
    let (mut connection, _outbox, reader, mut writer) = pair(1 << 20);
    let long = Frame::Binary(vec![1; (WAITING_BYTES as usize) * 2 / 3].into());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let flood = tokio::spawn(async move {
        for _ in 0..10 {
            writer.send(&long).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
        writer
    });
    settle().await;
    // One waits, one is read already, and one lies in the pipe.
    let taken = sent.load(Ordering::Relaxed);
    assert!(taken <= 3, "{taken} frames taken in");
    for _ in 0..10 {
        assert!(matches!(connection.event().await, Event::Frame(_)));
    }
    drop((flood.await.unwrap(), reader));
    assert!(matches!(connection.event().await, Event::Lost(_)));
}

#[tokio::test]
async fn frames_that_wait_to_go_out_are_bounded_by_their_bytes() {
    let (connection, outbox, mut reader, writer) = pair(1 << 20);
    let long = Frame::Binary(vec![1; LEAVING_BYTES as usize / 3 * 2].into());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let expected = long.clone();
    let session = tokio::spawn(async move {
        outbox.send(long.clone()).await.unwrap();
        outbox.send(ping()).await.unwrap();
        counted.fetch_add(1, Ordering::Relaxed);
        outbox.send(long).await.unwrap();
        counted.fetch_add(1, Ordering::Relaxed);
    });
    settle().await;
    assert_eq!(
        sent.load(Ordering::Relaxed),
        1,
        "the second long one waits for the first to be gone, a short one does not"
    );
    for frame in [&expected, &ping(), &expected] {
        assert_eq!(reader.receive().await.unwrap().as_ref(), Some(frame));
    }
    session.await.unwrap();
    drop((reader, writer, connection));
}

#[tokio::test]
async fn who_waits_for_room_hears_when_the_writer_gives_up() {
    let (connection, outbox, reader, writer) = pair(1 << 20);
    let long = Frame::Binary(vec![1; LEAVING_BYTES as usize / 3 * 2].into());
    let session = tokio::spawn(async move { while outbox.send(long.clone()).await.is_ok() {} });
    settle().await;
    assert!(!session.is_finished());
    drop((reader, writer));
    session.await.unwrap();
    drop(connection);
}

#[tokio::test]
async fn what_came_before_the_writer_was_lost_is_heard() {
    let (mut connection, outbox, reader, mut writer) = pair(1 << 16);
    writer.send(&ping()).await.unwrap();
    drop((reader, writer));
    // The pipe is closed: this or the next one cannot go out.
    while outbox.send(ping()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let mut heard = false;
    loop {
        match connection.event().await {
            Event::Frame(_) => heard = true,
            Event::Written => {}
            Event::Lost(_) => break,
        }
    }
    assert!(heard);
}
