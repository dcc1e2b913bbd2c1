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
