use super::*;
use crate::access_log::tests::answered;
use std::time::Duration;

fn figures(text: &str, name: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

#[test]
fn requests_of_all_workers_are_added_up() {
    let metrics = Metrics::default();
    let workers = [metrics.recorder(), metrics.recorder()];
    for (worker, status) in [(0, 200), (1, 200), (1, 404)] {
        let mut context = answered(status);
        context.request_size = 100;
        context.times.ended = Some(Duration::from_millis(30));
        workers[worker].count(&context);
    }
    let mut text = String::new();
    metrics.write(&mut text);
    assert_eq!(
        figures(&text, "kong_http_requests_total"),
        [
            r#"kong_http_requests_total{service="",route="",code="200",source="service",workspace="default",consumer=""} 2"#,
            r#"kong_http_requests_total{service="",route="",code="404",source="service",workspace="default",consumer=""} 1"#,
        ]
    );
    let ingress =
        r#"kong_bandwidth_bytes{service="",route="",direction="ingress",workspace="default",consumer=""} 300"#;
    assert!(text.contains(ingress), "{text}");
    let bucket = |bound: &str| {
        format!(r#"kong_request_latency_ms_bucket{{service="",route="",workspace="default",le="{bound}"}}"#)
    };
    assert_eq!(figures(&text, &bucket("25")), [format!("{} 0", bucket("25"))]);
    assert_eq!(figures(&text, &bucket("50")), [format!("{} 3", bucket("50"))]);
    assert_eq!(figures(&text, &bucket("+Inf")), [format!("{} 3", bucket("+Inf"))]);
    assert_eq!(figures(&text, "gwctl_request_seconds_count"), ["gwctl_request_seconds_count 3"]);
    assert_eq!(figures(&text, "kong_upstream_latency_ms_bucket"), [""; 0], "nothing was asked of an upstream");
}

#[test]
fn a_client_that_left_before_the_answer_is_counted_as_nginx_counts_it() {
    let metrics = Metrics::default();
    let mut context = answered(200);
    context.response = None;
    metrics.recorder().count(&context);
    let mut text = String::new();
    metrics.write(&mut text);
    assert!(text.contains(r#"code="499",source="error""#), "{text}");
}

#[test]
fn streams_of_more_routes_than_have_figures_share_those_without_a_route() {
    let metrics = Metrics::default();
    let recorder = metrics.recorder();
    let route = |number: usize| {
        let row = serde_json::json!({"id": number.to_string(), "protocols": ["udp"], "sources": [{"ip": "10.0.0.1"}]});
        gwctl_entities::view::from_record::<gwctl_entities::view::Route>(row.as_object().unwrap()).unwrap()
    };
    let without = recorder.stream(None, None);
    (1..ROUTES_LIMIT).for_each(|number| _ = recorder.stream(Some(&route(number)), None));
    let own = recorder.stream(Some(&route(1)), None);
    assert_eq!(&*own.route, "1");
    for number in ROUTES_LIMIT..ROUTES_LIMIT + 3 {
        let shared = recorder.stream(Some(&route(number)), None);
        assert!(Arc::ptr_eq(&shared, &without), "no figures for each stream of route {number}");
    }
    assert_eq!(lock(&recorder.counted.streams).len(), ROUTES_LIMIT);
}
