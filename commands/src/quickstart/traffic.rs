//! A little traffic through the data planes.

use crate::failure::Failure;

/// Path, header and the status that is right.
type Sample = (&'static str, Option<(&'static str, &'static str)>, u16);

const REQUESTS: &[Sample] = &[
    ("/orders", Some(("apikey", "alice-demo-key")), 200),
    ("/orders/42", Some(("apikey", "batch-demo-key")), 200),
    ("/orders", None, 401),
    ("/catalogue", Some(("host", "shop.example")), 200),
    ("/catalogue", Some(("x-channel", "beta")), 200),
    ("/status-page", None, 200),
    ("/maintenance", None, 503),
    ("/nowhere", None, 404),
];

/// Rounds of all requests through each data plane.
const ROUNDS: usize = 5;

pub(crate) fn client() -> Result<reqwest::Client, Failure> {
    reqwest::Client::builder()
        .timeout(super::ANSWER_LIMIT)
        .build()
        .map_err(|error| Failure::because("cannot make an HTTP client", &error))
}

/// Sends the requests; fails when an answer is not what the configuration says.
pub(crate) async fn send(proxies: &[String]) -> Result<(), Failure> {
    let client = client()?;
    let mut sent = 0;
    for _ in 0..ROUNDS {
        for proxy in proxies {
            for (path, header, expected) in REQUESTS {
                let mut request = client.get(format!("http://{proxy}{path}"));
                if let Some((name, value)) = header {
                    request = request.header(*name, *value);
                }
                let answer = request.send().await;
                let answer =
                    answer.map_err(|error| Failure::because(format!("GET http://{proxy}{path} failed"), &error))?;
                if answer.status().as_u16() != *expected {
                    let status = answer.status();
                    return Err(Failure::new(format!(
                        "GET http://{proxy}{path} answered {status}, expected {expected}"
                    )));
                }
                sent += 1;
            }
        }
    }
    tell!("==> {sent} requests sent through both data planes, all answered as configured");
    Ok(())
}

/// One request; its status or what went wrong, for a status line.
pub(crate) async fn one(client: &reqwest::Client, proxy: &str) -> String {
    let request = client.get(format!("http://{proxy}/orders")).header("apikey", "alice-demo-key");
    match request.send().await {
        Ok(answer) => answer.status().as_u16().to_string(),
        Err(_) => "failed".to_owned(),
    }
}
