//! The list against a plain one that does everything in the simplest way.

use super::*;
use crate::names::{self, CONNECTION, HOST, VIA};
use crate::{Digits, Limits, read_request};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

type Model = Vec<(String, Vec<u8>)>;

const NAMES: [&str; 6] = ["host", "via", "x-a", "x-b", "set-cookie", "x-real-ip"];

#[derive(Debug, Clone)]
enum Step {
    Append(&'static str, Vec<u8>),
    Insert(&'static str, Vec<u8>),
    Remove(&'static str),
    Retain(&'static str),
    RemoveAll,
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![b' '..=b'~', 128..=255_u8, Just(b'\t')], 0..6)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (select(&NAMES), value()).prop_map(|(name, value)| Step::Append(name, value)),
        (select(&NAMES), value()).prop_map(|(name, value)| Step::Insert(name, value)),
        select(&NAMES).prop_map(Step::Remove),
        select(&NAMES).prop_map(Step::Retain),
        Just(Step::RemoveAll),
    ]
}

fn take(model: &mut Model, step: &Step) {
    match step {
        Step::Append(name, value) => model.push(((*name).to_owned(), value.clone())),
        Step::Insert(name, value) => match model.iter().position(|(found, _)| found == name) {
            Some(at) => {
                model[at].1.clone_from(value);
                let mut place = 0..;
                model.retain(|(found, _)| place.next() == Some(at) || found != name);
            }
            None => model.push(((*name).to_owned(), value.clone())),
        },
        Step::Remove(name) => model.retain(|(found, _)| found != name),
        Step::Retain(name) => model.retain(|(found, _)| found == name),
        Step::RemoveAll => model.retain(|(found, _)| found != "host" && found != "via"),
    }
}

fn apply(headers: &mut Headers, step: &Step) {
    match step {
        Step::Append(name, value) => headers.append(Name::from_static(name), Value::new(value).unwrap()),
        Step::Insert(name, value) => headers.insert(Name::from_static(name), Value::new(value).unwrap()),
        Step::Remove(name) => {
            let was = headers.contains(*name);
            assert_eq!(headers.remove(*name), was);
        }
        Step::RemoveAll => headers.remove_all(Names::of(&[HOST, VIA])),
        Step::Retain(name) => headers.retain(|found| found.eq_ignore_ascii_case(name.as_bytes())),
    }
}

/// A head with these lines, and what stands in it. Letters of names are capitals where the bits say.
fn head(lines: &[(&'static str, Vec<u8>, u8)]) -> (Headers, Model) {
    let (mut bytes, mut model) = (b"GET / HTTP/1.1\r\n".to_vec(), Model::new());
    for (name, value, bits) in lines {
        for (at, letter) in name.bytes().enumerate() {
            bytes.push(if bits >> (at % 8) & 1 == 1 { letter.to_ascii_uppercase() } else { letter });
        }
        bytes.extend_from_slice(if bits & 3 == 3 { b":" } else { b": " });
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
        let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |end| end + 1);
        model.push(((*name).to_owned(), value[start..end].to_vec()));
    }
    bytes.extend_from_slice(b"\r\n");
    let head = read_request(&mut BytesMut::from(&bytes[..]), &mut 0, &Limits { size: 4096, fields: 100 });
    (head.unwrap().unwrap().headers, model)
}

fn list(headers: &Headers) -> Model {
    headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_bytes().to_vec())).collect()
}

/// The lines that are written, names in lower case.
fn written(headers: &Headers) -> Vec<u8> {
    let mut out = BytesMut::new();
    headers.write(&mut out, |_| Fate::Kept);
    let mut bytes = Vec::new();
    for line in out[..].split(|byte| *byte == b'\n') {
        let end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        bytes.extend(line[..end].to_ascii_lowercase());
        bytes.extend_from_slice(&line[end..]);
        bytes.push(b'\n');
    }
    bytes.pop();
    bytes
}

proptest! {
    #[test]
    fn the_list_does_what_a_plain_one_does(
        lines in vec((select(&NAMES), value(), any::<u8>()), 0..8), steps in vec(step(), 0..24),
    ) {
        let (mut headers, mut model) = head(&lines);
        for step in &steps {
            apply(&mut headers, step);
            take(&mut model, step);
            prop_assert_eq!(headers.len(), model.len());
            prop_assert_eq!(headers.is_empty(), model.is_empty());
            for name in NAMES {
                let values: Vec<_> = model.iter().filter(|(found, _)| found == name).map(|(_, value)| &value[..]).collect();
                prop_assert_eq!(headers.contains(name), !values.is_empty());
                prop_assert_eq!(headers.get(name).map(Value::as_bytes), values.first().copied());
                prop_assert_eq!(&headers.get_all(name).map(Value::as_bytes).collect::<Vec<_>>(), &values);
                let capitals = name.to_ascii_uppercase();
                prop_assert_eq!(headers.get_all(capitals.as_str()).count(), values.len());
            }
        }
        prop_assert_eq!(&list(&headers), &model);
        let size: usize = model.iter().map(|(name, value)| name.len() + value.len()).sum();
        prop_assert_eq!(headers.size(), size);
        let lines: Vec<_> = model.iter().map(|(name, value)| [name.as_bytes(), b": ", value, b"\r\n"].concat()).collect();
        prop_assert_eq!(written(&headers), lines.concat());
        prop_assert_eq!(list(&headers.clone()), model);
    }

    #[test]
    fn the_map_of_http2_comes_back(lines in vec((select(&NAMES), value()), 0..8)) {
        let headers: Headers = lines.iter().map(|(name, value)| (Name::from_static(name), Value::new(value).unwrap())).collect();
        let again = Headers::of_http2(&headers.to_map());
        for name in NAMES {
            let values = |headers: &Headers| headers.get_all(name).map(Value::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(values(&headers), values(&again));
        }
        prop_assert_eq!(headers.len(), again.len());
    }
}

#[test]
fn a_name_that_comes_back_is_spelled_as_before() {
    let (mut headers, _) = head(&[("x-real-ip", b"1".to_vec(), 0b0101_0100), ("via", b"2".to_vec(), 0xff)]);
    headers.remove("via");
    headers.remove("x-real-ip");
    for name in [VIA, names::X_REAL_IP, HOST] {
        headers.append(name, Value::from_static("3"));
    }
    let names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["VIA", "x-ReAl-ip", "Host"]);
}

#[test]
fn names_added_to_a_message_of_http2_are_in_lower_case_unless_they_are_ours() {
    let mut headers = Headers::of_http2(&HeaderMap::new());
    for name in ["x-a", "x-real-ip", "x-forwarded-for", "x-kong-debug", "etag", "connection"] {
        headers.append(Name::from_static(name), Value::default());
    }
    let names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["x-a", "X-Real-IP", "X-Forwarded-For", "X-Kong-Debug", "etag", "Connection"]);
}

#[test]
fn what_nobody_touched_is_written_as_it_came() {
    let (mut headers, _) = head(&[("host", b"a".to_vec(), 0x10), ("x-a", b"b".to_vec(), 0), ("via", b"c".to_vec(), 0)]);
    headers.insert(names::X_REAL_IP, Digits::of(u64::MAX));
    let mut out = BytesMut::new();
    headers.write(&mut out, |line| match line.name() {
        b"x-a" => Fate::LeftOut,
        b"via" => Fate::Changed(b"d"),
        _ => Fate::Kept,
    });
    assert_eq!(out, "host: a\r\nvia: d\r\nX-Real-IP: 18446744073709551615\r\n");
    assert!(!headers.contains(CONNECTION));
}

#[test]
fn a_value_has_no_control_characters() {
    for text in ["a\r", "a\n", "\0", "\u{7f}"] {
        assert_eq!(Value::new(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(Value::new(b"a\t\xff").unwrap().to_str(), None);
    assert_eq!(Value::new(b"a\tb").unwrap().to_str(), Some("a\tb"));
}
